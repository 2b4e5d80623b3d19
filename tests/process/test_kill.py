"""SIGKILL to bookies while entries are in flight: no acknowledged entry is lost."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from pathlib import Path

from tests.process.at_once import at_once, json_at_once
from tests.process.running import TIMEOUT_S, Member, Up, run, started

LINES = [f"{number:06d} " + "x" * 100 for number in range(60_000)]


def test_a_bookie_killed_during_appends_costs_no_acknowledged_entry(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "4", "--nodes", "0") as up:
        ledger = at_once("ledger", "create", uri=up.uri).stdout.strip()
        victim = json_at_once("ledger", "show", ledger, uri=up.uri)["segments"][0]["ensemble"][0]
        with started("ledger", "append", ledger, "--ids", uri=up.uri) as append:
            feeder = threading.Thread(target=feed, args=(append,))
            feeder.start()
            assert append.stdout is not None
            acknowledged = [int(append.stdout.readline()) for _ in range(10_000)]
            up.kill_member(victim)
            acknowledged += [int(line) for line in append.stdout]
            feeder.join()
            assert append.wait(TIMEOUT_S) == 0
            assert acknowledged == list(range(len(LINES)))
            shown = json_at_once("ledger", "show", ledger, uri=up.uri)
            assert len(shown["segments"]) >= 2
            assert victim not in shown["segments"][-1]["ensemble"]
            assert run("ledger", "read", ledger, uri=up.uri).stdout.splitlines() == LINES


def feed(append: subprocess.Popen[str]) -> None:
    assert append.stdin is not None
    with append.stdin as pipe:
        pipe.writelines(f"{line}\n" for line in LINES)


def test_all_bookies_killed_have_every_entry_after_replay(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "0") as up:
        text = "\n".join(LINES[:3000])
        made = json.loads(run("ledger", "append", "new", "--leave-open", "--json", uri=up.uri, text=text).stdout)
        ledger = str(made["ledger_id"])
        for name in up.members:
            up.kill_member(name)
        with contextlib.ExitStack() as stack:
            for name in up.members:
                stack.enter_context(Member(up.folder, name))
            assert json_at_once("ledger", "recover", ledger, uri=up.uri)["entries"] == made["entries"] == 3000
            assert at_once("ledger", "read", ledger, uri=up.uri).stdout.splitlines() == LINES[:3000]


def test_the_ledger_of_a_killed_writer_recovers_every_acknowledged_entry(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "0") as up:
        ledger = at_once("ledger", "create", uri=up.uri).stdout.strip()
        with started("ledger", "append", ledger, "--ids", uri=up.uri) as append:
            feeder = threading.Thread(target=feed_until_broken, args=(append,))
            feeder.start()
            assert append.stdout is not None
            acknowledged = [int(append.stdout.readline()) for _ in range(5_000)]
            append.kill()
            acknowledged += [int(line) for line in append.stdout.read().splitlines() if line]
            feeder.join()
            append.wait(TIMEOUT_S)
            recovered = json_at_once("ledger", "recover", ledger, uri=up.uri)
            assert recovered["entries"] > acknowledged[-1]
            assert at_once("ledger", "read", ledger, uri=up.uri).stdout.splitlines() == LINES[: recovered["entries"]]


def feed_until_broken(append: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        feed(append)
