"""A bookie of `triplicate up` is killed for good; `triplicate cluster recover` makes its copies again."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

from tests.process.at_once import at_once, json_at_once
from tests.process.copies import all_missing, names_of, registered, write_ledgers
from tests.process.running import Up, run, run_json
from tests.waiting import LIMIT_S, wait_until


def test_copies_of_a_bookie_that_is_killed_for_good_are_made_again(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--nodes", "0", heals=False) as up:
        ledger_ids = asyncio.run(write_ledgers(up.uri, leave_open=1))
        lost = "bookie-2"
        up.kill_member("bookie-2")
        wait_until(lambda: lost not in asyncio.run(registered(up.uri)), LIMIT_S, "the registration is gone")

        dry = run_json("cluster", "recover", "--dry-run", uri=up.uri)
        assert dry["lost"] == [lost]
        assert dry["needs"]
        assert json_at_once("cluster", "under-replicated", uri=up.uri) == []

        answer = run("cluster", "recover", "--rate", "0", uri=up.uri, TRIPLICATE_AUTORECOVERY_OPEN_LEDGER_GRACE_S="1")
        assert f"lost bookies: {lost}; {len(dry['needs'])} of {len(dry['needs'])} ledgers have their copies" in answer.stdout

        assert lost not in asyncio.run(names_of(up.uri, ledger_ids))
        assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
        assert json_at_once("cluster", "under-replicated", uri=up.uri) == []
        assert json_at_once("cluster", "recover", uri=up.uri)["needs"] == []
        assert up.end(signal.SIGTERM) == 0


def test_without_a_spare_bookie_the_ledgers_are_listed_and_stay_marked(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--nodes", "0", "--bookies", "3", heals=False) as up:
        ledger_id = int(at_once("ledger", "create", uri=up.uri).stdout)
        at_once("ledger", "append", str(ledger_id), "one", "two", uri=up.uri)
        lost = "bookie-2"
        refused = at_once("cluster", "recover", lost, uri=up.uri, check=False)
        assert refused.returncode == 1
        assert f"{lost} is registered and writable" in refused.stderr
        up.kill_member("bookie-2")
        wait_until(lambda: lost not in asyncio.run(registered(up.uri)), LIMIT_S, "the registration is gone")
        failed = at_once("cluster", "recover", "--json", uri=up.uri, check=False)
        assert failed.returncode == 1
        assert json.loads(failed.stdout)["unrepaired"] == [ledger_id]
        assert f"no bookie for the copies of {lost}" in failed.stdout
        (mark,) = json_at_once("cluster", "under-replicated", uri=up.uri)
        assert (mark["ledger"], mark["missing"], mark["locked_by"]) == (ledger_id, [lost], None)
        assert mark["since"].endswith("Z")
        assert str(ledger_id) in at_once("cluster", "under-replicated", uri=up.uri).stdout
        assert up.end(signal.SIGTERM) == 0
