"""The parts of the play of databases: loads as plain data, copies that a crash takes and a kill leaves, nodes cut off from the metadata."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from triplicate.errors import SessionExpired
from triplicate.metadata import ReplicatedMemoryStore
from triplicate.sim import World
from triplicate.sim.host import SimulatedClock
from triplicate.sql import database_file
from triplicate_simulator import WORKLOADS, Plan, RunContext, SimulatedCluster, plan_from_json, plan_of, run_seed
from triplicate_simulator.checkers.history import History
from triplicate_simulator.checkers.linearizability import Invoked, Refused, Returned, operations_of
from triplicate_simulator.checkers.sql_rules import FinalCopy, journal_of
from triplicate_simulator.workloads.sql.sql_load import DatabaseLoad, draw_load, smaller_loads
from triplicate_simulator.workloads.sql.sql_model import OpenOperation, SqlModel
from triplicate_simulator.workloads.sql.sql_nodes import DATABASE, CopyFolders, DatabaseServer, IsolatedTree
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload, read_copy

SEED = 7


def test_a_plan_of_databases_survives_json() -> None:
    for seed in range(7, 400, 10):
        plan = plan_of(seed)
        assert plan.workload == "databases"
        assert plan_from_json(plan.to_json()) == plan


def test_every_smaller_load_asks_for_less_and_shrinking_ends() -> None:
    load: DatabaseLoad | None = draw_load(random.Random(1))
    steps = 0
    while load is not None:
        smaller = list(smaller_loads(load))
        assert load not in smaller
        load = smaller[-1] if smaller else None
        steps += 1
        assert steps < 100


def test_seeds_differ_in_what_befalls_the_leader() -> None:
    kinds = {strike[0] for seed in range(7, 600, 10) for strike in plan_of(seed).load.leader_strikes}
    assert len(kinds) > 12


def test_copies_lie_in_one_folder_that_goes_with_them() -> None:
    copies = CopyFolders()
    one, other = copies.new(), copies.new()
    assert one != other
    one.mkdir()
    connection = apsw.Connection(str(one / "a.db"))
    assert copies.connections() == [connection]
    assert copies.connections(other) == []
    connection.close()
    folder = copies.folder
    copies.remove()
    copies.remove()
    assert not folder.exists()


def test_a_session_that_is_cut_off_hears_nothing_until_it_is_reachable_again() -> None:
    world = World(SEED)

    async def body() -> None:
        store = ReplicatedMemoryStore(SimulatedClock(world.loop, 0.0), world.loop.call_later, world.rng("metadata"))
        reachable = asyncio.Event()
        reachable.set()
        tree = IsolatedTree(store, reachable)
        watch = tree.watch("/a")
        reachable.clear()
        store.expire(tree.session_id)
        for silent in (tree.exists("/a"), watch.changed()):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(silent, 0.01)
        reachable.set()
        with pytest.raises(SessionExpired):
            await tree.exists("/a")
        with pytest.raises(SessionExpired):
            await watch.changed()

    asyncio.run(body())
    world.close()


def play_scene(monkeypatch: pytest.MonkeyPatch, scene: Callable[[SqlWorkload], Awaitable[None]]) -> None:
    class ScenePlay(SqlWorkload):
        async def begin(self) -> None:
            await super().begin()
            await scene(self)

    monkeypatch.setitem(WORKLOADS, "databases", ScenePlay)
    load = replace(draw_load(random.Random(SEED)), talkers=0, watchers=0, leader_strikes=())
    result = run_seed(SEED, Plan("databases", load, duration_s=0.5))
    assert result.ok, str(result)


def rows_at(server: DatabaseServer) -> int:
    path = database_file(server.folder, DATABASE)
    if not path.exists():
        return -1
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        (count,) = connection.execute("select count(*) from accounts").fetchone() or (0,)
    finally:
        connection.close()
    return int(count)


def test_a_kill_leaves_the_copy_and_a_power_failure_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(of: SqlWorkload) -> None:
        server = of.model.leaders()[0].server
        before = server.folder
        server.crash(keep_unsynced=True)
        await asyncio.sleep(0)
        assert server.folder != before
        assert not Path(before).exists()
        assert rows_at(server) == 4
        await server.restart()
        while server.database is None:
            await asyncio.sleep(0.1)
        server.crash()
        await asyncio.sleep(0)
        assert rows_at(server) == -1
        assert of.copies.connections(server.folder) == []
        await server.restart()

    play_scene(monkeypatch, scene)


def test_a_process_that_ended_in_order_keeps_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(of: SqlWorkload) -> None:
        server = of.model.leaders()[0].server
        folder, starts = server.folder, server.starts
        await server.stop()
        assert server.database is None
        assert of.copies.connections(folder) == []
        assert rows_at(server) == 4
        while server.database is None:
            await asyncio.sleep(0.1)
        assert (server.folder, server.starts) == (folder, starts + 1)

    play_scene(monkeypatch, scene)


def test_a_node_that_ends_by_itself_is_a_violation_unless_it_starts_without_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[str]] = []

    async def scene(of: SqlWorkload) -> None:
        (first, second, _), ends = of.servers.values(), of.context.cluster.ends
        of.context.cluster.cut_off[first.name] = 1
        first.crash(keep_unsynced=True)
        await first.restart()
        await asyncio.sleep(2.0)
        del of.context.cluster.cut_off[first.name]
        found.append(list(ends))
        while first.database is None:
            await asyncio.sleep(0.1)
        assert second.node is not None
        second.node._failure.fail(RuntimeError("broken on purpose"))
        await asyncio.sleep(2.0)
        found.append(list(ends))
        assert second.database is not None, "it was started again"
        ends.clear()

    play_scene(monkeypatch, scene)
    assert found[0] == []
    assert ["broken on purpose" in end for end in found[1]] == [True]


def test_each_of_several_databases_is_judged_by_itself() -> None:
    load = replace(draw_load(random.Random(SEED)), databases=3, leader_strikes=())
    result = run_seed(SEED, Plan("databases", load, duration_s=5.0))
    assert result.ok, str(result)
    assert result.counts["databases"] == 3
    copies = [event for event in result.events if isinstance(event, FinalCopy)]
    assert len(copies) == 3 * load.nodes
    assert len({tuple(copy.tables["triplicate_state"]) for copy in copies}) > 1, "they are different databases"


def test_an_outcome_that_no_client_saw_is_decided_by_the_copies() -> None:
    world = World(SEED)
    load = draw_load(random.Random(SEED))
    context = RunContext(world, SimulatedCluster(world), Plan("databases", load))
    model = SqlModel(context, load, {})
    done, lost = model.invoke("a", "x", "swap", (0, 1)), model.invoke("a", "x", "write", (2,))
    added = model.invoke("a", "y", "add", (1,))
    model.open_operations = {
        done: OpenOperation("there", "swap"),
        lost: OpenOperation("not there", "write"),
        added: OpenOperation("crowd:1", "add"),
    }
    model.resolve_operations({"there": 1, "crowd:1": 1}, {"crowd:1": 7})
    assert [type(event) for event in context.history.events] == [Invoked, Invoked, Invoked, Returned, Refused, Returned]
    assert operations_of(History(context.history.events))["y"][0].result == 7
    (operation,) = operations_of(History(context.history.events))["x"]
    assert operation.result is True
    world.close()


def test_a_copy_is_read_with_its_rowids_counters_and_schema(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "copy.db"))
    connection.execute("create table triplicate_state(position, epoch, batch, schema_version, pruned_through, diverged)")
    connection.execute("insert into triplicate_state values (5, 9, 1, 2, 0, null)")
    connection.execute("create table journal(number integer primary key autoincrement, token text, register text)")
    connection.execute("insert into journal(token) values ('a'), ('b')")
    copy = read_copy("n1", connection)
    connection.close()
    assert isinstance(copy, FinalCopy)
    assert copy.position == 5
    assert journal_of(copy) == {"a": 1, "b": 1}
    assert list(copy.tables["sqlite_sequence"]) == [("journal", 2)]
    assert copy.tables["check"] == [("ok",)]
    assert {row[1] for row in copy.tables["schema"]} >= {"journal", "triplicate_state"}
