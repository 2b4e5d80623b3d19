"""Faults of databases found by seeds and reviews, each reproduced by a forced schedule; the docstring names the fault."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.simulation.database_rig import QUIET, at, leader, run_scenario, writing
from triplicate.errors import ConnectionLost, SqlError
from triplicate.metadata import InjectedFault
from triplicate.sql import SqlDatabase
from triplicate_simulator import run_seed
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload


async def reached(behind: DatabaseServer, ahead: DatabaseServer) -> None:
    """Wait until one node's copy is where another's is."""
    async with asyncio.timeout(20.0):
        while behind.database is None or ahead.database is None or behind.database.position < ahead.database.position:
            assert behind.diverged is None, behind.diverged
            await asyncio.sleep(0.01)


def test_a_session_with_a_snapshot_is_closed_after_its_node_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its close raised because its connection's thread had ended; or it reopened the connection, which was never closed."""

    async def scenario(of: SqlWorkload) -> None:
        server = await leader(of)
        holds, stopped = asyncio.Event(), asyncio.Event()
        many = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 300) select i from n"

        async def converse(database: SqlDatabase) -> None:
            session = await database.session()
            await session.start(await session.prepare("begin"), ())
            cursor = await session.start(await session.prepare(many), ())
            assert len(await cursor.fetch(10)) == 10
            holds.set()
            await stopped.wait()
            with pytest.raises(SqlError) as refused:
                await session.prepare("select 1")
            assert refused.value.sqlstate == "57P01"
            await cursor.close()
            await session.close()

        talking = of.context.world.loop.start_task(server.call(converse), name="converse")
        await holds.wait()
        await server.stop()
        stopped.set()
        await talking
        assert server.copies.connections(server.folder) == []

    run_scenario(monkeypatch, scenario)


def test_a_lost_connection_ends_no_database_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that lost its connection while it read which node leads ended for good. A pause of the store ended all nodes at once
    (seed 710027 of its day, in which the simulator hid 26 such ends)."""

    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        store = of.context.cluster.store
        usual = store.fault
        assert usual is not None
        lost = 0

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            nonlocal lost
            made = usual(session, operation, path)
            if made is not None and operation == "get" and path.endswith("/leader"):
                lost += 1
                made.raise_before = ConnectionLost(f"{operation} {path}: the connection was lost (simulated)")
            return made

        store.fault = fault
        for session_id in store.sessions:
            store.wake_session(session_id)
        await asyncio.sleep(3.0)
        store.fault = usual
        assert lost >= len(of.servers)
        assert await at(of, first, writing(5)) == ""
        assert [server.starts for server in of.servers.values()] == [1] * len(of.servers)

    run_scenario(monkeypatch, scenario)


def test_a_copy_is_not_condemned_by_a_head_that_is_older_than_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewed session reached a server without the last take-over. Its stale head showed a log that its leader had closed, and that
    ended before the copy's position. The copy was condemned as diverged."""

    async def scenario(of: SqlWorkload) -> None:
        store, points = of.context.cluster.store, of.context.world.points
        first = await leader(of)
        assert await at(of, first, writing(1)) == ""
        # The server knows the next leader and its ledger, but not the take-over.
        points.trap("log.head_change", lambda _: store.hold(2), node=next(name for name in of.servers if name != first.name))
        points.trap("log.head_change", lambda _: store.hold(2), node=next(name for name in reversed(of.servers) if name != first.name))
        first.allowed.clear()
        await first.stop()
        second = await leader(of, besides=first)
        for value in range(2, 5):
            assert await at(of, second, writing(value)) == ""
        (third,) = [server for server in of.servers.values() if server not in (first, second)]
        await reached(third, second)
        store.new_session_server = 2
        assert third.expire_session()
        usual = store.fault
        assert usual is not None
        lost = 0

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            nonlocal lost
            made = usual(session, operation, path)
            if made is not None and session == third.session_id and operation == "exists" and path.endswith("/leader") and not lost:
                lost += 1
                made.raise_before = ConnectionLost(f"{operation} {path}: the connection was lost (simulated)")
            return made

        store.fault = fault
        for _ in range(10):
            await asyncio.sleep(0.1)
            # There is none while the node waits for its server, which is correct too.
            if third.session_id is not None:
                store.wake_session(third.session_id)
        store.release(2)
        await asyncio.sleep(1.0)
        store.fault = usual
        store.new_session_server = None
        await first.restart()
        await reached(third, second)

    run_scenario(monkeypatch, scenario)


async def write_until(of: SqlWorkload, kind: str, times: int) -> None:
    """Write at the leader until `times` more trace events of a kind have occurred."""
    counts = of.context.world.recorder.counts
    until, value = counts.get(kind, 0) + times, 1
    async with asyncio.timeout(60.0):
        while counts.get(kind, 0) < until:
            await at(of, await leader(of), writing(of.model.value() + value))
            await asyncio.sleep(0.1)


def test_a_copy_is_not_condemned_because_its_snapshots_were_replaced_while_it_loaded_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """During a slow load both listed snapshots were replaced by newer ones, and their ledgers deleted. The load reported no snapshot, and
    the copy, whose position lay in the truncated part of the log, was condemned as diverged."""

    async def scenario(of: SqlWorkload) -> None:
        points = of.context.world.points
        await write_until(of, "replica.log_truncated", 1)
        first = await leader(of)
        slow = [server for server in of.servers.values() if server is not first][-1]
        held = points.hold("log.snapshot_read", node=slow.name)
        slow.crash()
        await slow.restart()
        for skip in (1, 0):
            await held.reached
            await write_until(of, "replica.snapshot", 3)
            again = points.hold("log.snapshot_read", node=slow.name, skip=skip)
            held.release()
            held = again
        held.release()
        await reached(slow, await leader(of))

    run_scenario(monkeypatch, scenario, load=replace(QUIET, snapshot_log_bytes=512, snapshot_interval_s=0.5))


def test_a_node_that_is_stopped_during_a_take_over_without_the_metadata_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of deleting the owner's node replaced the cancellation, so the copy followed the log again and the node never ended
    (seed 118 of databases)."""

    async def scenario(of: SqlWorkload) -> None:
        store, points = of.context.cluster.store, of.context.world.points
        first = await leader(of)
        assert await at(of, first, writing(1)) == ""
        nodes: list[DatabaseServer] = []
        taking_over = asyncio.Event()
        usual = store.fault
        assert usual is not None

        def cut_off(name: str) -> None:
            nodes.append(of.servers[name])
            taking_over.set()

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            made = usual(session, operation, path)
            if made is not None and nodes and session == nodes[0].session_id:
                made.raise_before = ConnectionLost(f"{operation} {path}: the connection was lost (simulated)")
            return made

        store.fault = fault
        points.trap("client.recovery.closing", cut_off)
        first.crash()
        async with asyncio.timeout(30.0):
            await taking_over.wait()
        (node,) = nodes
        await asyncio.sleep(0.2)
        node.allowed.clear()
        async with asyncio.timeout(30.0):
            await node.stop()
        store.fault = usual
        await node.restart()
        await first.restart()
        assert await at(of, await leader(of), writing(2)) == ""

    run_scenario(monkeypatch, scenario)


def test_a_copy_that_comes_back_to_a_drained_node_is_shown_when_it_has_caught_up() -> None:
    """Seed 96137: a node was drained, got a copy again, and showed it while that was older than what the node had shown before."""
    result = run_seed(96137)
    assert result.workload == "databases"
    assert result.struck["drain_node"] > 0
    assert result.violations == []
