"""Leaders that are moved to a named node while their clients write."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, run, state_of
from tests.unit.sql.placement_rig import BY_HAND, create, led_by, play_placed
from triplicate.errors import SqlError
from triplicate.metadata import own_paths
from triplicate.replica.core.placement import EVERYWHERE, Placement
from triplicate.sql.hosting.leader_moves import choose_leader, move_leader

LIMIT_S = 20.0


async def three_nodes(cluster: Cluster, placement: Placement = EVERYWHERE) -> None:
    for name in ("n1", "n2", "n3"):
        await cluster.start(name, BY_HAND)
    admin = await create(cluster, "db", placement)
    await led_by(admin, "db")
    for name in ("n1", "n2", "n3"):
        await cluster.stands_for_election(name)


async def write_always(cluster: Cluster, number: int, written: list[int], ended: asyncio.Event) -> set[str]:
    """Insert rows one by one, with another connection after each error. Returns the errors."""
    errors: set[str] = set()
    while not ended.is_set():
        try:
            session = await (await cluster.leader()).session()
            while not ended.is_set():
                value = number * 1_000_000 + len(written)
                await run(session, "insert into t values($1)", (value,))
                written.append(value)
        except SqlError as error:
            errors.add(error.sqlstate)
            await asyncio.sleep(0.005)
    return errors


def test_writers_meet_nothing_but_57p01_while_the_leader_moves(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await three_nodes(cluster)
        admin = cluster.client("admin")
        await run(await (await cluster.leader()).session(), "create table t(a)")
        ended = asyncio.Event()
        written: list[list[int]] = [[] for _ in range(4)]
        loop = asyncio.get_running_loop()
        writers = [loop.create_task(write_always(cluster, number, rows, ended)) for number, rows in enumerate(written)]
        for _ in range(3):
            before = await led_by(admin, "db")
            target = await choose_leader(admin, "db", "")
            assert target != before
            await move_leader(admin, "db", target, LIMIT_S)
            assert await led_by(admin, "db") == target
            rows = sum(map(len, written))
            while sum(map(len, written)) < rows + 4:
                await asyncio.sleep(0.01)
        ended.set()
        errors = [await writer for writer in writers]
        assert set().union(*errors) == {"57P01"}, "a writer has met another error, or none at all"
        session = await (await cluster.leader()).session()
        stored = await run(session, "select a from t order by a")
        assert stored == sorted((value,) for rows in written for value in rows), "each answered row is there once"

    play_placed(tmp_path, scene)


def test_a_transaction_that_runs_is_committed_before_the_leader_moves(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await three_nodes(cluster)
        admin = cluster.client("admin")
        leader = await cluster.leader()
        first, second = await leader.session(), await leader.session()
        await run(first, "create table t(a)")
        await run(first, "begin immediate")
        await run(first, "insert into t values(1)")
        target = await choose_leader(admin, "db", "")
        loop = asyncio.get_running_loop()
        moving = loop.create_task(move_leader(admin, "db", target, LIMIT_S))
        while leader.leadership is None or leader.leadership._drained is None:
            await asyncio.sleep(0.005)
        waiting = loop.create_task(state_of(run(second, "insert into t values(2)")))
        await run(first, "insert into t values(3)")
        assert not waiting.done()
        await run(first, "commit")
        await moving
        assert await waiting == "57P01"
        assert (await first.ended).sqlstate == "57P01"
        again = await (await cluster.leader()).session()
        assert await run(again, "select a from t order by a") == [(1,), (3,)]

    play_placed(tmp_path, scene)


def test_a_transaction_beyond_the_limit_is_ended_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await three_nodes(cluster)
        admin = cluster.client("admin")
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "begin immediate")
        await run(session, "insert into t values(1)")
        await move_leader(admin, "db", await choose_leader(admin, "db", ""), LIMIT_S)
        assert await state_of(run(session, "commit")) == "57P01"
        again = await (await cluster.leader()).session()
        assert await run(again, "select count(*) from t") == [(0,)]

    play_placed(tmp_path, scene)


def test_a_move_that_does_not_take_place_is_withdrawn_and_the_leader_goes_on(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await three_nodes(cluster)
        admin = cluster.client("admin")
        leader = await led_by(admin, "db")
        session = await (await cluster.leader()).session()
        assert await state_of(move_leader(admin, "db", "elsewhere", 0.2)) == "55P03"
        path = own_paths.database_path(admin.metadata.own_root, "db")
        assert await admin.metadata.tree.exists(f"{path}/handover") is None
        await run(session, "create table t(a)")
        assert await led_by(admin, "db") == leader
        await admin.metadata.tree.create(f"{path}/handover", b"", ephemeral=True)
        assert await state_of(move_leader(cluster.client("other"), "db", "n1", 0.2)) == "55006"
        assert await state_of(move_leader(admin, "missing", "n1", 0.2)) == "3D000"

    play_placed(tmp_path, scene)


def test_a_read_only_copy_never_leads(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await three_nodes(cluster, Placement(readers=("n2", "n3")))
        admin = cluster.client("admin")
        assert await led_by(admin, "db") == "n1"
        for target in ("n2", ""):
            with pytest.raises(SqlError, match=r"read-only|no other node"):
                await choose_leader(admin, "db", target)
        await cluster.nodes.pop("n1").stop()
        await asyncio.sleep(0.5)
        assert not any(cluster.database(node).is_leader for node in ("n2", "n3"))
        await cluster.start("n1", BY_HAND)
        assert await led_by(admin, "db") == "n1"

    play_placed(tmp_path, scene)
