"""A bookie of `triplicate up` is killed for good, and its copies are made again without a command."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.copies import all_missing, marked, names_of, write_ledgers
from tests.process.running import TIMEOUT_S, Up, run, started
from tests.waiting import LIMIT_S, wait_until
from triplicate.client import connect


async def candidates(uri: str) -> int:
    async with connect(uri) as client:
        return len(await client.metadata.auditor.candidates())


async def ledgers(uri: str) -> list[int]:
    async with connect(uri) as client:
        return [ledger_id async for ledger_id in client.metadata.ledgers.ids()]


def test_the_copies_of_a_bookie_that_is_killed_for_good_come_back_by_themselves(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--nodes", "0") as up:
        ledger_ids = asyncio.run(write_ledgers(up.uri))
        wait_until(lambda: asyncio.run(candidates(up.uri)) == 4, LIMIT_S, "all bookies vote")
        status = json_at_once("cluster", "autorecovery", "status", uri=up.uri)
        assert (status["enabled"], status["lost_bookie_delay_s"]) == (True, 60)
        lost = next(name for name in sorted(asyncio.run(names_of(up.uri, ledger_ids))) if name != status["auditor"])
        at_once("cluster", "autorecovery", "delay", "1", uri=up.uri)
        up.kill_member(lost)
        wait_until(lambda: lost not in asyncio.run(names_of(up.uri, ledger_ids)), TIMEOUT_S, "no ledger names the lost bookie")
        wait_until(lambda: not asyncio.run(marked(up.uri)), TIMEOUT_S, "no ledger is marked")
        assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
        audit = at_once("cluster", "audit", uri=up.uri)
        assert re.search(r"^replicas: [0-9]+ ledgers, 0 marked, 0 not examined$", audit.stdout, re.MULTILINE)

        with started("autorecovery", "--metadata", up.uri, "--process-metrics-port", "0") as process:
            wait_until(lambda: asyncio.run(candidates(up.uri)) == 4, LIMIT_S, "the process votes")
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        assert up.end(signal.SIGTERM) == 0


@pytest.mark.deep
def test_an_idle_database_gets_its_copies_back(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--nodes", "1", TRIPLICATE_CLIENT_LOST_BOOKIE_LIMIT_S="1") as up:
        at_once("cluster", "autorecovery", "delay", "1", uri=up.uri)
        at_once("database", "create", "shop", uri=up.uri)
        run("sql", "shop", "-c", "create table t(a)", uri=up.uri)
        run("sql", "shop", "-c", "insert into t values (1), (2)", uri=up.uri)
        (ledger_id,) = asyncio.run(ledgers(up.uri))
        lost = min(asyncio.run(names_of(up.uri, [ledger_id])))
        up.kill_member(lost)
        wait_until(
            lambda: lost not in asyncio.run(names_of(up.uri, [ledger_id])), TIMEOUT_S, "the idle ledger names the lost bookie no longer"
        )
        wait_until(lambda: not asyncio.run(marked(up.uri)), TIMEOUT_S, "no ledger is marked")
        assert "every copy of them is there" in at_once("ledger", "check", "--read", str(ledger_id), uri=up.uri).stdout
        answer = run("sql", "shop", "-c", "select count(*) from t", uri=up.uri)
        assert "2" in answer.stdout
        assert asyncio.run(ledgers(up.uri)) == [ledger_id], "the leader kept its ledger"
        assert up.end(signal.SIGTERM) == 0
