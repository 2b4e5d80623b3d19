"""The log commands against a real cluster, also when its processes are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import TIMEOUT_S, Up, run, started

LINES = [f"{number:06d} " + "y" * 60 for number in range(100_000)]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Up(tmp_path_factory.mktemp("log") / "c", "--bookies", "3", "--nodes", "0") as up:
        yield up.uri


def test_a_log_is_created_appended_to_and_read(uri: str) -> None:
    run("log", "create", "events", uri=uri)
    assert run("log", "append", "events", "a", "b", "--offsets", uri=uri).stdout == "0\n1\n"
    appended = json.loads(run("log", "append", "events", "--json", uri=uri, text="c\nd\n").stdout)
    assert (appended["first_offset"], appended["end_offset"], appended["records"], appended["epoch"]) == (2, 4, 2, 2)
    assert run("log", "read", "events", uri=uri).stdout == "a\nb\nc\nd\n"
    assert at_once("log", "read", "events", "--from", "1", "--to", "3", "--offsets", uri=uri).stdout == "1\tb\n2\tc\n"
    assert at_once("log", "read", "events", "--from", "latest", uri=uri).stdout == ""
    records = [
        json.loads(line) for line in at_once("log", "read", "events", "--count", "1", "--format", "json", uri=uri).stdout.splitlines()
    ]
    assert [(record["offset"], record["value"]) for record in records] == [(0, "a")]


def test_show_and_list_print_the_present_state(uri: str) -> None:
    at_once("log", "create", "small", "--roll-size-bytes", "1024", "--compression", "none", uri=uri)
    run("log", "append", "small", uri=uri, text="\n".join(LINES[:1000]))
    shown = json_at_once("log", "show", "small", uri=uri)
    assert (shown["first_offset"], shown["end_offset"], shown["owner"]) == (0, 1000, None)
    assert shown["settings"]["roll_size_bytes"] == 1024
    assert sum(segment["records"] for segment in shown["segments"]) == 1000
    assert "small" in [one["log"] for one in json_at_once("log", "list", uri=uri)]
    assert "small" in at_once("log", "list", uri=uri).stdout
    assert "roll_size_bytes" in at_once("log", "show", "small", uri=uri).stdout


def test_truncation_and_deletion(uri: str) -> None:
    at_once("log", "create", "old", uri=uri)
    at_once("log", "append", "old", "a", "b", "c", uri=uri)
    at_once("log", "truncate", "old", "2", "--yes", uri=uri)
    assert at_once("log", "read", "old", "--offsets", uri=uri).stdout == "2\tc\n"
    refused = at_once("log", "read", "old", "--from", "0", uri=uri, check=False)
    assert (refused.returncode, refused.stderr) == (1, "triplicate: log 'old' begins at offset 2; 0 was truncated\n")
    assert at_once("log", "truncate", "old", "9", "--yes", uri=uri, check=False).returncode == 1
    at_once("log", "delete", "old", "--yes", uri=uri)
    gone = at_once("log", "read", "old", uri=uri, check=False)
    assert gone.returncode == 1
    assert gone.stderr.startswith("triplicate: no log 'old'")


def test_consumers_are_listed_reset_and_deleted_and_settings_altered(uri: str) -> None:
    at_once("log", "create", "shared", uri=uri)
    at_once("log", "append", "shared", "a", "b", "c", uri=uri)
    missing = at_once("log", "consumer", "reset", "shared", "billing", "--to", "1", uri=uri, check=False)
    assert missing.returncode == 1
    assert "log 'shared' has no consumer 'billing': it has none (`triplicate log consumers shared`); `--create`" in missing.stderr
    assert json_at_once("log", "consumers", "shared", uri=uri) == []
    made = at_once("log", "consumer", "reset", "shared", "billing", "--to", "1", "--create", uri=uri)
    assert made.stderr.endswith("goes on at offset 1\n")
    (found,) = json_at_once("log", "consumers", "shared", uri=uri)
    assert (found["name"], found["position"], found["lag"], found["truncated"], found["owner"]) == ("billing", 1, 2, 0, None)
    at_once("log", "consumer", "reset", "shared", "billing", "--to", "2001-01-01T00:00:00Z", uri=uri)
    assert "billing" in at_once("log", "consumers", "shared", uri=uri).stdout
    assert json_at_once("log", "consumers", "shared", uri=uri)[0]["position"] == 0
    refused = at_once("log", "consumer", "reset", "shared", "billing", "--to", "yesterday", uri=uri, check=False)
    assert (refused.returncode, "'yesterday' is no position" in refused.stderr) == (2, True)
    at_once("log", "consumer", "delete", "shared", "billing", uri=uri)
    gone = at_once("log", "consumer", "delete", "shared", "billing", uri=uri, check=False)
    assert (gone.returncode, "has no consumer 'billing'" in gone.stderr) == (1, True)
    altered = json_at_once("log", "alter", "shared", "--retain-age-s", "3600", "--roll-size-bytes", "1048576", uri=uri)
    assert (altered["settings"]["retain_age_s"], altered["settings"]["roll_size_bytes"]) == (3600.0, 1048576)
    assert at_once("log", "alter", "shared", uri=uri, check=False).returncode == 2
    wrong = at_once("log", "alter", "shared", "--write-quorum", "1", uri=uri, check=False)
    assert wrong.returncode == 1
    assert at_once("log", "read", "shared", "--from", "2001-01-01T00:00:00Z", uri=uri).stdout == "a\nb\nc\n"


@pytest.mark.parametrize(
    "verb",
    [("append", "x"), ("append", "x", "--take-over"), ("truncate", "latest", "--yes"), ("delete", "--yes"), ("delete", "--yes", "--force")],
)
def test_log_commands_that_would_harm_a_database_are_refused(uri: str, verb: tuple[str, ...]) -> None:
    if "shop" not in [one["database"] for one in json_at_once("database", "list", uri=uri)]:
        at_once("database", "create", "shop", uri=uri)
    (name,) = [one["log"] for one in json_at_once("database", "list", uri=uri) if one["database"] == "shop"]
    refused = at_once("log", verb[0], name, *verb[1:], uri=uri, check=False)
    assert refused.returncode == 1
    assert "belongs to database 'shop'" in refused.stderr
    assert "`triplicate database drop shop`" in refused.stderr
    assert at_once("log", "read", name, uri=uri).stdout == ""
    assert json_at_once("log", "show", name, uri=uri)["purpose"] == "database 'shop'"
    assert {one["log"]: one["purpose"] for one in json_at_once("log", "list", uri=uri)}[name] == "database 'shop'"


def test_a_log_with_a_deleted_ledger_is_reported_and_restored(uri: str) -> None:
    at_once("log", "create", "broken", uri=uri)
    at_once("log", "append", "broken", "a", "b", uri=uri)
    assert at_once("log", "repair", "broken", uri=uri).stdout == "log broken: every ledger exists\n"
    (segment,) = json_at_once("log", "show", "broken", uri=uri)["segments"]
    ledger = str(segment["ledger_id"])
    at_once("ledger", "delete", ledger, "--yes", "--force", uri=uri)
    shown = at_once("log", "repair", "broken", uri=uri, check=False)
    assert shown.returncode == 1
    assert f"triplicate ledger undelete {ledger}" in shown.stdout
    refused = at_once("log", "repair", "broken", "--apply", uri=uri, check=False)
    assert refused.returncode == 1
    assert f"`triplicate ledger undelete {ledger}`" in refused.stderr
    at_once("ledger", "undelete", ledger, uri=uri)
    assert json_at_once("log", "repair", "broken", uri=uri)["lost"] == []
    assert at_once("log", "read", "broken", uri=uri).stdout == "a\nb\n"


def test_a_sweep_prints_counts_of_deleted_objects(uri: str) -> None:
    at_once("log", "create", "swept", uri=uri)
    nothing = {"segments": 0, "pages": 0, "publishers": 0, "ledgers": 0}
    assert json_at_once("log", "sweep", "swept", uri=uri) == {"log": "swept", "dry_run": False, **nothing}
    assert json_at_once("log", "sweep", "--dry-run", uri=uri) == {"log": None, "dry_run": True, **nothing}
    assert "ledgers" in at_once("log", "sweep", uri=uri).stdout
    assert at_once("log", "sweep", "nowhere", uri=uri, check=False).returncode == 1


def test_a_tail_follows_and_a_second_writer_names_the_first(uri: str) -> None:
    at_once("log", "create", "live", uri=uri)
    with (
        started("log", "tail", "live", "--from", "earliest", "--offsets", uri=uri) as tail,
        started("log", "append", "live", "--owner", "somebody", "--offsets", uri=uri) as append,
    ):
        assert append.stdin is not None
        assert append.stdout is not None
        assert tail.stdout is not None
        for number in range(5):
            append.stdin.write(f"line {number}\n")
            append.stdin.flush()
            assert append.stdout.readline() == f"{number}\n"
            assert tail.stdout.readline() == f"{number}\tline {number}\n"
        refused = at_once("log", "append", "live", "x", uri=uri, check=False)
        assert refused.returncode == 1
        assert "'somebody'" in refused.stderr
        assert at_once("log", "append", "live", "x", "--take-over", "--offsets", uri=uri).stdout == "5\n"
        assert tail.stdout.readline() == "5\tx\n"
        append.stdin.write("late\n")
        append.stdin.close()
        assert append.wait(TIMEOUT_S) == 1
        assert append.stderr is not None
        assert "taken over" in append.stderr.read()
        tail.send_signal(signal.SIGINT)
        assert tail.wait(TIMEOUT_S) == 130


def test_an_offset_beyond_the_end_is_refused_and_the_end_itself_is_not(uri: str) -> None:
    at_once("log", "create", "short", uri=uri)
    at_once("log", "append", "short", "a", "b", uri=uri)
    refused = at_once("log", "read", "short", "--from", "50", uri=uri, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == ("triplicate: log 'short' ends at offset 2, 50 is not there yet; `triplicate log tail short` waits for more\n")
    assert at_once("log", "read", "short", "--from", "2", uri=uri).stdout == ""


def test_a_closed_output_pipe_is_no_failure(uri: str) -> None:
    at_once("log", "create", "followed", uri=uri)
    at_once("log", "append", "followed", "a", uri=uri)
    with started("log", "tail", "followed", "--from", "earliest", uri=uri) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline() == "a\n"
        tail.stdout.close()
        at_once("log", "append", "followed", "b", uri=uri)
        assert tail.wait(TIMEOUT_S) == 0
        assert tail.stderr is not None
        assert tail.stderr.read() == ""


def test_an_interrupted_append_prints_its_number_of_records(uri: str) -> None:
    at_once("log", "create", "piped", uri=uri)
    with started("log", "append", "piped", "--offsets", uri=uri) as append:
        assert append.stdin is not None
        assert append.stdout is not None
        append.stdin.write("a\nb\n")
        append.stdin.flush()
        assert [append.stdout.readline() for _ in range(2)] == ["0\n", "1\n"]
        append.send_signal(signal.SIGINT)
        assert append.wait(TIMEOUT_S) == 130
        assert append.stderr is not None
        assert "log piped: interrupted after 2 records, offsets from 0" in append.stderr.read()


def test_a_killed_writer_and_a_killed_bookie_cost_no_acknowledged_record(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "4", "--nodes", "0") as up:
        run("log", "create", "l", "--roll-size-bytes", "65536", "--compression", "none", uri=up.uri)
        with started("log", "append", "l", "--offsets", uri=up.uri) as append:
            feeder = threading.Thread(target=feed_until_broken, args=(append,))
            feeder.start()
            assert append.stdout is not None
            acknowledged = [int(append.stdout.readline()) for _ in range(5000)]
            up.kill_member("bookie-2")
            acknowledged += [int(append.stdout.readline()) for _ in range(20_000)]
            os.kill(append.pid, signal.SIGKILL)
            # The kill may have cut a line.
            acknowledged += [int(line) for line in append.stdout if line.endswith("\n")]
            feeder.join()
        assert acknowledged == list(range(len(acknowledged)))
        # The dead writer has no session, so no `--force` is needed.
        after = json.loads(run("log", "append", "l", "after", "--json", uri=up.uri).stdout)
        assert after["epoch"] == 2
        assert after["first_offset"] >= len(acknowledged)
        read = run("log", "read", "l", uri=up.uri).stdout.splitlines()
        assert read == [*LINES[: after["first_offset"]], "after"]


def feed_until_broken(append: subprocess.Popen[str]) -> None:
    assert append.stdin is not None
    with contextlib.suppress(BrokenPipeError), append.stdin as pipe:
        pipe.writelines(f"{line}\n" for line in LINES)
