"""One of three machines dies, with a bookie and the leading node: writes continue, and after its return all copies are restored."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Member, Up, is_running, run_json
from tests.waiting import wait_until
from triplicate import connect

LIMIT_S = 90.0
"""Limit of the gap in writes, in seconds. It is below five on an idle machine; a test's machine may be busy."""


PAUSE_S = 0.01
"""Between two inserts: as fast as they go they would need a processor for themselves."""


class Inserts(threading.Thread):
    """Inserts 0, 1, 2 … one after another through the leading node, each until it is acknowledged."""

    def __init__(self, dsn: str) -> None:
        super().__init__(daemon=True)
        self.dsn = dsn
        self.acknowledged: list[float] = []
        """Time of each acknowledgement, in monotonic seconds."""
        self.failure: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        while not self._over.is_set():
            try:
                if connection is None:
                    connection = psycopg.connect(self.dsn, autocommit=True, connect_timeout=2)
                connection.execute("INSERT INTO t VALUES (%s) ON CONFLICT DO NOTHING", [len(self.acknowledged)])
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.02)
            else:
                self.acknowledged.append(time.monotonic())
                time.sleep(PAUSE_S)
        if connection is not None:
            connection.close()

    def end(self) -> int:
        self._over.set()
        self.join(30)
        return len(self.acknowledged)


def led_by(uri: str) -> str | None:
    leader: str | None = json_at_once("database", "show", "shop", uri=uri)["leader"]
    return leader


def segments(uri: str, log: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json_at_once("log", "show", log, uri=uri)["segments"]
    return found


def writable(uri: str) -> int:
    async def count() -> int:
        async with connect(uri) as client:
            return len(await client.metadata.bookies.writable())

    return asyncio.run(count())


def test_writes_continue_without_one_of_three_machines_and_all_copies_are_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "3") as up:
        at_once("database", "create", "shop", uri=up.uri)
        wait_until(lambda: led_by(up.uri) is not None, LIMIT_S, "a node leads")
        log = json_at_once("database", "show", "shop", uri=up.uri)["log"]
        addresses = [up.members[name]["address"].rpartition(":") for name in ("node-1", "node-2", "node-3")]
        hosts, ports = ",".join(host for host, _, _ in addresses), ",".join(port for _, _, port in addresses)
        dsn = f"host={hosts} port={ports} dbname=shop user=u target_session_attrs=read-write"
        wait_until(lambda: made_table(dsn), LIMIT_S, "the table is there")
        inserts = Inserts(dsn)
        inserts.start()
        wait_until(lambda: len(inserts.acknowledged) > 50, LIMIT_S, "inserts are acknowledged")

        leader = led_by(up.uri)
        assert leader is not None
        gap_s = machine_dies(up, ("bookie-3", leader), inserts)
        with capsys.disabled():
            print(f"\nlongest gap in writes when the leader and a bookie die together: {gap_s:.2f} s")

        # After the bookie's registration ends, new segments have two copies, and are marked as reduced.
        wait_until(lambda: writable(up.uri) == 2, LIMIT_S, "the bookie's session is over")
        at_once("log", "create", "plain", uri=up.uri)
        at_once("log", "append", "plain", *map(str, range(20)), uri=up.uri)
        (short,) = segments(up.uri, "plain")
        assert short["reduced"] == {"ensemble_size": 2, "write_quorum": 2}
        planned = json_at_once("log", "rewrite", "plain", "--dry-run", uri=up.uri)
        assert [(one["first_offset"], one["end_offset"], one["ledgers"]) for one in planned] == [(0, 20, [short["ledger_id"]])]
        assert json_at_once("log", "rewrite", "plain", "--merge", "--dry-run", uri=up.uri) == []
        assert run_json("log", "rewrite", "plain", uri=up.uri)["postponed"] == 1
        count = len(inserts.acknowledged)
        wait_until(lambda: len(inserts.acknowledged) > count, LIMIT_S, "writes go on still")

        with Member(up.folder, "bookie-3"):
            wait_until(lambda: writable(up.uri) == 3, LIMIT_S, "the bookie is back")
            count = len(inserts.acknowledged)
            wait_until(lambda: len(inserts.acknowledged) > count, LIMIT_S, "writes go on with it")
            wait_until(lambda: segments(up.uri, log)[-1]["reduced"] is None, LIMIT_S, "the open segment has all copies")
            total = inserts.end()
            for name in up.members:
                if name.startswith("node") and name != leader:
                    os.kill(up.members[name]["pid"], signal.SIGTERM)
            wait_until(lambda: segments(up.uri, log)[-1]["state"] == "closed", LIMIT_S, "the nodes have ended")
            assert any(segment["reduced"] for segment in segments(up.uri, log)), "no segment is listed as reduced"
            before = {name: at_once("log", "read", name, "--format", "hex", uri=up.uri).stdout for name in (log, "plain")}
            for name in (log, "plain"):
                done = json_at_once("log", "rewrite", name, uri=up.uri)
                assert (done["postponed"], done["segments"] > 0) == (0, True)
                assert not any(segment["reduced"] for segment in segments(up.uri, name))
            # The restarted bookie has a copy of each entry: all are readable from it alone.
            for name in ("bookie-1", "bookie-2"):
                up.kill_member(name)
            assert {name: at_once("log", "read", name, "--format", "hex", uri=up.uri).stdout for name in (log, "plain")} == before
        assert total > 50


def machine_dies(up: Up, names: tuple[str, ...], inserts: Inserts) -> float:
    """Kill processes together and wait for further inserts; return the longest time without an acknowledged one, in seconds."""
    victims = [up.members[name]["pid"] for name in names]
    died_at = time.monotonic()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, victims)), 30.0, "the machine is dead")
    wait_until(lambda: inserts.acknowledged[-1] > died_at + 0.5, LIMIT_S, "writes go on")
    return max(right - left for left, right in pairwise(list(inserts.acknowledged)))


def made_table(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=2) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)")
    except psycopg.Error:
        return False
    return True
