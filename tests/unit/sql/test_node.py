"""Database nodes: following, taking over, being deposed, starting again, diverging."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from tests.property.rowlog_workload import contents
from tests.unit.sql.cluster import Cluster, affected, play, run, state_of
from triplicate.errors import SessionExpired, SqlError
from triplicate.metadata import own
from triplicate.replica import Role
from triplicate.sql import database_info


async def fill(cluster: Cluster, count: int) -> int:
    """A table with some rows; returns the leader's position."""
    database = await cluster.leader()
    session = await database.session()
    await run(session, "create table if not exists t(id integer primary key autoincrement, a)")
    for index in range(count):
        await run(session, "insert into t(a) values($1)", (index,))
    return database.position


def test_followers_hold_the_same_and_are_read_only(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 10)
        leader = cluster.leader_name()
        for name in cluster.nodes:
            database = await cluster.caught_up(name, position)
            assert database.position == position == 11
            if name == leader:
                continue
            session = await database.session()
            assert not database.is_leader
            assert await run(session, "select count(*) from t") == [(10,)]
            assert await state_of(run(session, "insert into t(a) values(1)")) == "25006"
            assert await state_of(run(session, "begin immediate")) == "25006"
            await run(session, "begin")
            assert await run(session, "select max(a) from t") == [(9,)]
            await run(session, "commit")
            with pytest.raises(SqlError) as refused:
                await run(session, "delete from t")
            assert refused.value.hint == f"The leader is at {leader}:5432."
        same = [contents(str(tmp_path / name / "databases" / "db" / "main.db")) for name in ("n1", "n2", "n3")]
        assert same[0] == same[1] == same[2]
        status = await database_info(cluster.client("other"), "db")
        assert status.leader == leader
        assert sorted(copy.node_id for copy in status.nodes) == ["n1", "n2", "n3"]

    play(tmp_path, scene, nodes=3)


def test_a_follower_takes_over_and_the_deposed_leader_follows(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 5)
        old_name = cluster.leader_name()
        old = cluster.database(old_name)
        session = await old.session()
        await run(session, "begin")
        await run(session, "insert into t(a) values('lost')")
        # Another node takes the log while the old leader knows nothing of it.
        metadata = cluster.client("operator").metadata
        await metadata.tree.delete(f"{own.database_path(metadata.own_root, 'db')}/leader")
        new = await cluster.leader(besides=old_name)
        assert await state_of(run(session, "commit")) in ("08007", "57P01")
        reason = await asyncio.wait_for(session.ended, 5)
        assert reason.sqlstate == "57P01"
        assert await state_of(run(session, "select 1")) == "57P01"
        again = await new.session()
        assert await run(again, "select count(*) from t") == [(5,)]
        await run(again, "insert into t(a) values('kept')")
        await cluster.caught_up(old_name, new.position)
        assert cluster.nodes[old_name].hosted["db"].role is Role.FOLLOWER
        assert await run(await old.session(), "select a from t where id = 6") == [("kept",)]

    play(tmp_path, scene, nodes=2)


def test_a_deposed_leader_serves_no_read(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        old = await cluster.leader()
        session = await old.session()
        assert await run(session, "select count(*) from t") == [(3,)]
        # Somebody else recovers the log; the old leader has not been told and has nothing to write.
        info = cluster.nodes["n1"].hosted["db"].info
        thief = await cluster.stage.logs().writer(info.log, owner="thief")
        assert await state_of(run(session, "select count(*) from t")) == "57P01"
        await thief.close()

    play(tmp_path, scene)


def test_an_unknown_outcome_is_told_with_the_id_and_decided_by_recovery(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        database = await cluster.leader()
        session = await database.session()
        info = cluster.nodes["n1"].hosted["db"].info
        thief = await cluster.stage.logs().writer(info.log, owner="thief")
        await thief.close()
        with pytest.raises(SqlError) as lost:
            await run(session, "insert into t(a) values('unknown')")
        assert lost.value.sqlstate == "08007"
        identity = int((lost.value.detail or "").rstrip(".").rsplit(" ", 1)[1])
        await asyncio.wait_for(session.ended, 5)
        await asyncio.sleep(0.02)
        again = await (await cluster.leader()).session()
        status = (await run(again, "select pg_xact_status($1)", (identity,)))[0][0]
        count = (await run(again, "select count(*) from t where a = 'unknown'"))[0][0]
        assert (status, count) == ("aborted", 0)

    play(tmp_path, scene)


def test_a_node_starts_again_from_its_local_copy(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 20)
        await cluster.nodes["n1"].stop()
        del cluster.nodes["n1"]
        node = await cluster.start("n1")
        assert node.hosted["db"].start_position == position
        database = await cluster.leader()
        session = await database.session()
        assert await run(session, "select count(*) from t") == [(20,)]
        assert await affected(session, "delete from t where a < 5") == 5

    play(tmp_path, scene)


def test_a_request_id_survives_a_change_of_leader(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 1)
        session = await (await cluster.leader()).session()
        await session.set_request_id("once")
        assert await run(session, "insert into t(a) values('once') returning id") == [(2,)]
        first = cluster.leader_name()
        await cluster.nodes.pop(first).stop()
        session = await (await cluster.leader()).session()
        await session.set_request_id("once")
        assert await run(session, "insert into t(a) values('once') returning id") == [(2,)]
        assert await run(session, "select count(*) from t") == [(2,)]

    play(tmp_path, scene, nodes=2)


def test_a_wrong_copy_stops_serving_and_says_so_also_after_a_restart(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 5)
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        database = await cluster.caught_up(follower, position)
        session = await database.session()
        damage = apsw.Connection(database.path)
        damage.set_busy_timeout(1000)
        damage.execute("delete from t where id = 3")
        damage.close()
        await run(await (await cluster.leader()).session(), "update t set a = a + 1")
        reason = await asyncio.wait_for(session.ended, 5)
        assert reason.sqlstate == "58000"
        assert "update of 5 rows of 't' changed 4" in reason.message
        assert await state_of(database.session()) == "58000"
        assert cluster.nodes[follower].hosted["db"].role is Role.DIVERGED
        await cluster.nodes.pop(follower).stop()
        await cluster.start(follower)
        assert await state_of(cluster.database(follower).session()) == "58000"
        await cluster.nodes.pop(cluster.leader_name()).stop()
        await asyncio.sleep(0.1)
        assert not cluster.database(follower).is_leader

    play(tmp_path, scene, nodes=2)


def test_databases_made_later_are_hosted_too(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create("second")
        database = await cluster.leader("second")
        await run(await database.session(), "create table only_here(a)")
        other = await (await cluster.leader("db")).session()
        assert await state_of(run(other, "select * from only_here")) == "42P01"
        assert cluster.nodes["n1"].names() == ["db", "second"]
        assert await state_of(cluster.create("second")) == "42P04"
        assert await state_of(database_info(cluster.client("other"), "third")) == "3D000"

    play(tmp_path, scene)


def test_a_node_that_was_declared_dead_stops_and_says_so(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        first = cluster.leader_name()
        session = await cluster.database(first).session()
        await cluster.expire(first)
        error = await asyncio.wait_for(cluster.nodes[first].failed(), 5)
        assert isinstance(error, SessionExpired)
        assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        again = await (await cluster.leader(besides=first)).session()
        assert await run(again, "select count(*) from t") == [(3,)]

    play(tmp_path, scene, nodes=2)


def test_a_session_with_a_snapshot_can_be_closed_after_its_node_has_stopped(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 300)
        session = await cluster.database(cluster.leader_name()).session()
        await run(session, "begin")
        cursor = await session.start(await session.prepare("select a from t"), ())
        assert len(await cursor.fetch(10)) == 10
        await cluster.nodes[cluster.leader_name()].stop()
        with pytest.raises(SqlError) as refused:
            await run(session, "select 1")
        assert refused.value.sqlstate == "57P01"
        await cursor.close()
        await session.close()
        assert not [found for found in apsw.connections() if found.filename.startswith(str(tmp_path))]

    play(tmp_path, scene)
