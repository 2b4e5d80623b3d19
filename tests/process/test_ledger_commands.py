"""The ledger commands against a real cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import TIMEOUT_S, Up, run, started


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Up(tmp_path_factory.mktemp("ledger") / "c", "--bookies", "3", "--nodes", "0") as up:
        yield up.uri


def test_appended_entries_are_read_back(uri: str) -> None:
    ledger = run("ledger", "create", uri=uri).stdout.strip()
    run("ledger", "append", ledger, "first", "zweiter Satz: ü", "", uri=uri)
    assert run("ledger", "read", ledger, uri=uri).stdout == "first\nzweiter Satz: ü\n\n"
    assert run("ledger", "read", ledger, "--first", "1", "--last", "1", "--ids", "--format", "hex", uri=uri).stdout == (
        f"1\t{'zweiter Satz: ü'.encode().hex()}\n"
    )
    entries = [json.loads(line) for line in at_once("ledger", "read", ledger, "--format", "json", uri=uri).stdout.splitlines()]
    assert [entry["payload"] for entry in entries] == ["first", "zweiter Satz: ü", ""]
    assert entries[2]["length"] == len(b"first") + len("zweiter Satz: ü".encode())


def test_lines_come_from_standard_input_or_a_file(uri: str, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(5000)]
    made = json.loads(run("ledger", "append", "new", "--json", uri=uri, text="\n".join(lines)).stdout)
    assert (made["entries"], made["first_entry_id"], made["last_entry_id"], made["closed"]) == (5000, 0, 4999, True)
    assert at_once("ledger", "read", str(made["ledger_id"]), uri=uri).stdout.splitlines() == lines
    file = tmp_path / "lines"
    file.write_text("a\nb\n")
    made = json.loads(run("ledger", "append", "new", "--file", str(file), "--json", uri=uri).stdout)
    assert made["entries"] == 2


def test_show_and_list_print_the_present_state(uri: str) -> None:
    ledger = at_once(
        "ledger", "create", "--ensemble", "2", "--write-quorum", "2", "--ack-quorum", "1", "--digest", "hmac", uri=uri
    ).stdout.strip()
    shown = json_at_once("ledger", "show", ledger, uri=uri)
    assert (shown["state"], shown["quorums"], shown["digest"], shown["entries"]) == ("open", "2/2/1", "hmac", None)
    assert shown["last_add_confirmed"] == -1
    at_once("ledger", "append", ledger, "x", uri=uri)
    shown = json_at_once("ledger", "show", ledger, uri=uri)
    assert (shown["state"], shown["entries"], shown["bytes"], shown["last_add_confirmed"]) == ("closed", 1, 1, 0)
    assert len(shown["segments"][0]["ensemble"]) == 2
    listed = {one["ledger_id"]: one for one in json_at_once("ledger", "list", uri=uri)}
    assert listed[int(ledger)]["state"] == "closed"
    assert f" {ledger} " in at_once("ledger", "list", uri=uri).stdout
    assert "bookie-" in at_once("ledger", "show", ledger, uri=uri).stdout


def test_a_ledger_is_written_by_one_writer_once(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    at_once("ledger", "append", ledger, "x", uri=uri)
    answer = at_once("ledger", "append", ledger, "y", uri=uri, check=False)
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert f"ledger {ledger}" in answer.stderr
    assert at_once("ledger", "read", ledger, uri=uri).stdout == "x\n"


def test_recover_closes_a_ledger_that_its_writer_left_open(uri: str) -> None:
    made = json.loads(at_once("ledger", "append", "new", "a", "b", "--leave-open", "--json", uri=uri).stdout)
    ledger = str(made["ledger_id"])
    assert json_at_once("ledger", "show", ledger, uri=uri)["state"] == "open"
    recovered = json_at_once("ledger", "recover", ledger, uri=uri)
    assert (recovered["state"], recovered["entries"], recovered["bytes"]) == ("closed", 2, 2)
    assert at_once("ledger", "read", ledger, uri=uri).stdout == "a\nb\n"
    assert json_at_once("ledger", "recover", ledger, uri=uri) == recovered


def test_tail_follows_until_the_ledger_is_closed(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    with started("ledger", "tail", ledger, "--ids", uri=uri) as tail, started("ledger", "append", ledger, "--ids", uri=uri) as append:
        assert tail.stdout is not None
        assert append.stdin is not None
        assert append.stdout is not None
        for number in range(3):
            append.stdin.write(f"entry {number}\n")
            append.stdin.flush()
            assert append.stdout.readline() == f"{number}\n"
            if number:
                # A reader sees an entry after the next one, which carries the confirmation.
                assert tail.stdout.readline() == f"{number - 1}\tentry {number - 1}\n"
        append.communicate(timeout=TIMEOUT_S)
        assert append.returncode == 0
        rest, _ = tail.communicate(timeout=TIMEOUT_S)
        assert rest == "2\tentry 2\n"
        assert tail.returncode == 0


def test_delete_asks_for_confirmation_unless_yes_is_given(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    refused = run("ledger", "delete", ledger, uri=uri, text="n\n", check=False)
    assert refused.returncode == 130
    assert refused.stderr.endswith("nothing was done\n")
    at_once("ledger", "show", ledger, uri=uri)
    at_once("ledger", "delete", ledger, "--yes", uri=uri)
    assert_names(at_once("ledger", "show", ledger, uri=uri, check=False), f"ledger {ledger}")
    assert_names(at_once("ledger", "delete", ledger, "--yes", uri=uri, check=False), f"ledger {ledger}")


def test_delete_without_an_answer_says_what_to_give(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    answer = at_once("ledger", "delete", ledger, uri=uri, check=False)
    assert answer.returncode == 2
    assert "standard input ended without an answer, and nothing was done; give --yes" in answer.stderr
    at_once("ledger", "show", ledger, uri=uri)


def test_a_ledger_that_a_log_needs_is_neither_deleted_nor_fenced_unless_forced(uri: str) -> None:
    at_once("log", "create", "needed", uri=uri)
    with started("log", "append", "needed", "--offsets", uri=uri) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("x\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "0\n"
        rows = {row["belongs_to"]: str(row["ledger_id"]) for row in json_at_once("ledger", "list", uri=uri)}
        ledger = rows["open segment of log 'needed'"]
        for verb in (("delete", ledger, "--yes"), ("delete", ledger), ("recover", ledger)):
            assert_names(at_once("ledger", *verb, uri=uri, check=False), f"ledger {ledger} is the open", "of log 'needed'", "--force")
        writer.stdin.write("y\n")
        writer.communicate(timeout=TIMEOUT_S)
        assert writer.returncode == 0
    at_once("ledger", "delete", ledger, "--yes", "--force", uri=uri)
    (missing,) = [row for row in json_at_once("ledger", "list", uri=uri) if row["state"] == "missing"]
    assert (missing["ledger_id"], missing["belongs_to"]) == (int(ledger), "segment of log 'needed'")
    status = at_once("cluster", "status", uri=uri, check=False)
    assert status.returncode == 1
    assert f"log needed needs 1 ledger that is gone: {ledger} > triplicate log repair needed" in status.stdout
    at_once("ledger", "undelete", ledger, uri=uri)
    assert at_once("log", "read", "needed", uri=uri).stdout == "x\ny\n"
    assert "needs 1 ledger" not in at_once("cluster", "status", uri=uri, check=False).stdout


def test_a_deleted_ledger_is_undeleted(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    before = json_at_once("ledger", "show", ledger, uri=uri)
    assert before["placement"]["adherence"] == "soft", "all bookies are on one machine"
    at_once("ledger", "delete", ledger, "--yes", uri=uri)
    assert json_at_once("ledger", "undelete", ledger, uri=uri) == {
        name: value for name, value in before.items() if name not in ("last_add_confirmed", "placement")
    }
    assert json_at_once("ledger", "show", ledger, uri=uri) == before
    assert_names(at_once("ledger", "undelete", ledger, uri=uri, check=False), f"ledger {ledger} is not in the trash")


def assert_names(answer: subprocess.CompletedProcess[str], *names: str) -> None:
    """Assert exit code 1 and one line that names these."""
    assert answer.returncode == 1, answer.stderr
    assert answer.stderr.count("\n") == 1, answer.stderr
    for name in names:
        assert name in answer.stderr


def test_an_unknown_ledger_is_named(uri: str) -> None:
    for verb in ("show", "read", "tail", "recover"):
        assert_names(at_once("ledger", verb, "987654", uri=uri, check=False), "987654")
    assert_names(at_once("ledger", "append", "987654", "x", uri=uri, check=False), "987654")


def test_too_few_bookies_are_listed(uri: str) -> None:
    answer = at_once("ledger", "create", "--ensemble", "5", uri=uri, check=False)
    assert_names(answer, "bookie-1", "bookie-2", "bookie-3", "5")


def test_a_wrong_password_is_refused(uri: str) -> None:
    ledger = at_once("ledger", "create", "--password", "secret", uri=uri).stdout.strip()
    assert_names(at_once("ledger", "append", ledger, "x", "--password", "wrong", uri=uri, check=False), ledger, "password")
    at_once("ledger", "append", ledger, "x", "--password", "secret", uri=uri)
    none = at_once("ledger", "read", ledger, uri=uri, check=False)
    assert_names(none, ledger, "password")
    assert f"ledger {ledger} was created with a password, and none was given" in none.stderr
    assert "--password" in none.stderr
    needless = at_once("ledger", "create", uri=uri).stdout.strip()
    wrong = at_once("ledger", "read", needless, "--password", "secret", uri=uri, check=False)
    assert f"the password given for ledger {needless} is not the one it was created with" in wrong.stderr


def test_impossible_quorums_are_refused(uri: str) -> None:
    assert at_once("ledger", "create", "--ack-quorum", "4", uri=uri, check=False).returncode == 1


def test_a_record_over_the_limit_is_refused_without_writing(uri: str) -> None:
    ledger = at_once("ledger", "create", uri=uri).stdout.strip()
    answer = run("ledger", "append", ledger, uri=uri, text="x" * (6 << 20), check=False)
    assert answer.returncode == 1
    assert "bytes" in answer.stderr
    assert json_at_once("ledger", "recover", ledger, uri=uri)["entries"] == 0
