"""The levels of reads on the leader and on nodes that follow: what is answered, what waits, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, fill, play, run, state_of
from tests.unit.sql.held_log import HeldLog, SetClock, play_leased
from tests.waiting import eventually
from triplicate.errors import NotEnoughBookies, SqlError
from triplicate.log import LogEntry
from triplicate.replica.core import apply_pacing
from triplicate.sql import SqlDatabase
from triplicate.sql.core.interface import SchemaMoved
from triplicate.sql.core.read_levels import ReadLevel, ReadSettings
from triplicate.sql.engine.session import SqlSession

COUNT = "select count(*) from t"
SHORT = "select a from t"
"""A statement that runs on the event loop."""
LONG_COUNT = "select count(*) from t where a like '%'"
"""A statement that runs on a reader's thread."""
ANY, SESSION, BOUNDED = ReadLevel.ANY, ReadLevel.SESSION, ReadLevel.BOUNDED


class HeldCopy:
    """A copy of a node that follows, which applies nothing until it is released, at the end of the block at the latest."""

    def __init__(self, database: SqlDatabase) -> None:
        self._released = asyncio.Event()
        self._apply = database.apply
        database.apply = self._hold  # type: ignore[method-assign]

    async def _hold(self, entries: Sequence[LogEntry]) -> int:
        await self._released.wait()
        return await self._apply(entries)

    def release(self) -> None:
        self._released.set()

    def __enter__(self) -> HeldCopy:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


async def follower(cluster: Cluster, rows: int = 1) -> tuple[SqlDatabase, SqlDatabase]:
    """(The leader, a node that follows and has some rows of the table)."""
    position = await fill(cluster, rows)
    leader = cluster.leader_name()
    (name,) = [name for name in cluster.nodes if name != leader]
    return cluster.database(leader), await cluster.caught_up(name, position)


async def session_at(database: SqlDatabase, level: ReadLevel, *, position: int = 0, max_staleness_s: float = 10.0) -> SqlSession:
    session = await database.session()
    session.set_reads(ReadSettings(level, max_staleness_s, position))
    return session


def test_only_the_leader_answers_linearizable_reads(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        assert await run(await session_at(leader, ReadLevel.LINEARIZABLE), COUNT) == [(1,)]
        with pytest.raises(SqlError, match="level linearizable") as caught:
            await run(await session_at(copy, ReadLevel.LINEARIZABLE), COUNT)
        assert caught.value.sqlstate == "25006"
        assert caught.value.hint == f"The leader is at {cluster.leader_name()}:5432."

    play(tmp_path, scene, nodes=2)


@pytest.mark.parametrize("sql", [COUNT, LONG_COUNT])
@pytest.mark.parametrize("transaction", [False, True])
def test_a_session_waits_until_the_copy_has_its_position(tmp_path: Path, sql: str, transaction: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        with HeldCopy(copy) as held:
            writer = await leader.session()
            await run(writer, "insert into t(a) values(7)")
            ((position,),) = await run(writer, "select triplicate_position()")
            assert isinstance(position, int)
            assert position == leader.position > copy.position
            assert await run(await session_at(copy, ANY), sql) == [(1,)]
            reader = await session_at(copy, SESSION, position=position)
            if transaction:
                await run(reader, "begin")
            read = asyncio.get_running_loop().create_task(run(reader, sql))
            await asyncio.sleep(0.05)
            assert not read.done()
            held.release()
            assert await read == [(2,)]

    play(tmp_path, scene, nodes=2)


@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("level", [SESSION, BOUNDED])
def test_a_table_that_the_copy_does_not_have_yet_is_waited_for(tmp_path: Path, level: ReadLevel, transaction: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        with HeldCopy(copy) as held:
            writer = await leader.session()
            await run(writer, "create table fresh(a)")
            ((position,),) = await run(writer, "select triplicate_position()")
            assert isinstance(position, int)
            with pytest.raises(SqlError, match="no such table"):
                await run(await session_at(copy, ANY), "select a from fresh")
            reader = await session_at(copy, level, position=position, max_staleness_s=0.05)
            if transaction:
                await run(reader, "begin")
            await asyncio.sleep(0.05)
            read = asyncio.get_running_loop().create_task(run(reader, "select a from fresh"))
            await asyncio.sleep(0.05)
            assert not read.done()
            held.release()
            assert await read == []

    play(tmp_path, scene, nodes=2)


@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("level", [SESSION, BOUNDED])
def test_a_query_that_waits_for_another_schema_is_planned_again(tmp_path: Path, level: ReadLevel, transaction: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        writer = await leader.session()
        await run(writer, "create view v as select 1 as a, 2 as b")
        await eventually(lambda: copy.position == leader.position)
        with HeldCopy(copy) as held:
            await run(writer, "drop view v")
            await run(writer, "create view v as select 2 as b, 1 as a")
            ((position,),) = await run(writer, "select triplicate_position()")
            assert isinstance(position, int)
            reader = await session_at(copy, level, position=position, max_staleness_s=0.05)
            if transaction:
                await run(reader, "begin")
            await asyncio.sleep(0.05)
            query, version = await reader.prepare("select * from v"), reader.schema_version
            assert [column.name for column in query.columns] == ["a", "b"]
            read = asyncio.get_running_loop().create_task(reader.start(query, (), version))
            await asyncio.sleep(0.05)
            assert not read.done()
            held.release()
            with pytest.raises(SchemaMoved):
                await read
            again = await reader.prepare("select * from v")
            assert [column.name for column in again.columns] == ["b", "a"]
            cursor = await reader.start(again, (), reader.schema_version)
            assert await cursor.fetch(10) == [(2, 1)]

    play(tmp_path, scene, nodes=2)


def test_a_position_that_is_not_reached_in_time_is_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        settings = replace(SETTINGS, read_level_wait_s=0.05)
        await cluster.start_with("n1", replace(settings, node_id="n1", directory=str(tmp_path / "n1")))
        position = await fill(cluster, 1)
        database = await cluster.leader()
        reader = await session_at(database, SESSION, position=position + 3)
        with pytest.raises(SqlError, match="not reached") as caught:
            await run(reader, COUNT)
        assert (caught.value.sqlstate, caught.value.detail) == ("55P03", "It is 3 records behind the position of the session.")
        reader.set_reads(ReadSettings(SESSION, position=position))
        assert await run(reader, COUNT) == [(1,)]

    play(tmp_path, scene, nodes=0)


@pytest.mark.parametrize("ends", [False, True])
def test_a_wait_ends_when_the_client_cancels_and_when_the_session_is_ended(tmp_path: Path, ends: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        _, copy = await follower(cluster)
        reader = await session_at(copy, SESSION, position=1 << 40)
        read = asyncio.get_running_loop().create_task(state_of(run(reader, COUNT)))
        await asyncio.sleep(0.02)
        if ends:
            reader.end(SqlError("57P01", "the node stops"))
        else:
            reader.cancel()
        assert await read == ("57P01" if ends else "57014")
        assert not copy.progress._at_position

    play(tmp_path, scene, nodes=2)


@pytest.mark.parametrize("sql", [COUNT, LONG_COUNT])
@pytest.mark.parametrize("transaction", [False, True])
def test_a_bounded_read_waits_until_the_copy_is_recent(tmp_path: Path, sql: str, transaction: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        with HeldCopy(copy) as held:
            await run(await leader.session(), "insert into t(a) values(7)")
            reader = await session_at(copy, BOUNDED, max_staleness_s=5.0)
            if transaction:
                await run(reader, "begin")
            read = asyncio.get_running_loop().create_task(run(reader, sql))
            await eventually(lambda: copy.progress.freshness.lacks == 1 or read.done())
            assert not read.done()
            held.release()
            assert await read == [(2,)]
        ((age_s, node),) = await run(reader, "select triplicate_read_age(), triplicate_read_node()")
        assert isinstance(age_s, float)
        assert 0.0 <= age_s <= 5.0
        assert node != cluster.leader_name()

    play(tmp_path, scene, nodes=2)


def test_a_recent_copy_answers_without_a_question(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        _, copy = await follower(cluster)
        reader = await session_at(copy, BOUNDED, max_staleness_s=60.0)
        await run(reader, COUNT)
        asked: list[int] = []
        find_end = copy.progress.find_end
        assert find_end is not None

        async def counted() -> int:
            asked.append(1)
            return await find_end()

        copy.progress.find_end = counted
        for _ in range(10):
            assert await run(reader, COUNT) == [(1,)]
        assert not asked

    play(tmp_path, scene, nodes=2)


def test_a_copy_whose_age_is_unknown_refuses_bounded_reads_and_answers_others(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.start_with(name, replace(SETTINGS, node_id=name, directory=str(tmp_path / name), read_level_wait_s=0.3))
        _, copy = await follower(cluster)

        async def fail() -> int:
            raise NotEnoughBookies("too few bookies answer")

        copy.progress.find_end = fail
        with pytest.raises(SqlError, match="of unknown age") as caught:
            await run(await session_at(copy, BOUNDED), COUNT)
        assert (caught.value.sqlstate, caught.value.detail) == ("55P03", "The end of the log is not known: too few bookies answer")
        assert await run(await session_at(copy, ANY), COUNT) == [(1,)]
        assert await run(await copy.session(), "select triplicate_read_age()") == [(None,)]

    play(tmp_path, scene, nodes=0)


def test_a_snapshot_that_was_taken_too_late_is_taken_again(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        reader = await session_at(copy, BOUNDED, max_staleness_s=5.0)
        await run(reader, SHORT)
        late_s = 0.0
        now, read_now = copy.progress.now, copy.pool.read_now

        def hold_still(*arguments: Any) -> Any:
            # The process is suspended between its admission and its snapshot, and another node writes meanwhile.
            nonlocal late_s
            late_s += 60.0
            copy.pool.read_now = read_now  # type: ignore[method-assign]
            return read_now(*arguments)

        copy.progress.now = lambda: now() + late_s  # type: ignore[method-assign]
        copy.pool.read_now = hold_still  # type: ignore[method-assign, assignment]
        before = copy.progress.freshness.current_at
        assert await run(reader, SHORT) == [(0,)]
        assert copy.progress.freshness.current_at > before + 50.0
        assert leader.position == copy.position

    play(tmp_path, scene, nodes=2)


def test_the_level_is_that_of_the_first_read_of_a_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        _, copy = await follower(cluster)
        reader = await session_at(copy, ANY)
        await run(reader, "begin")
        assert await run(reader, COUNT) == [(1,)]
        reader.set_reads(ReadSettings(ReadLevel.LINEARIZABLE))
        assert await run(reader, COUNT) == [(1,)]
        await run(reader, "commit")
        assert await state_of(run(reader, COUNT)) == "25006"

    play(tmp_path, scene, nodes=2)


@pytest.mark.parametrize(("level", "appends"), [(ReadLevel.DEFAULT, 1), (ReadLevel.LINEARIZABLE, 1), (BOUNDED, 1), (SESSION, 0), (ANY, 0)])
def test_a_leader_without_a_lease_appends_for_the_levels_that_need_a_proof(tmp_path: Path, level: ReadLevel, appends: int) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        reader = await session_at(database, level, position=database.position)
        before = log.noops
        assert await run(reader, "select a from t") == [(1,)]
        assert log.noops == before + appends

    play_leased(tmp_path, 0.0, scene)


def test_a_leader_shows_how_long_ago_it_has_proved_that_it_leads(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        reader = await session_at(database, ANY)
        assert await run(reader, "select triplicate_read_age()") == [(0.0,)]
        clock.now += 30.0
        assert await run(reader, "select triplicate_read_age()") == [(30.0,)]

    play_leased(tmp_path, 0.75, scene)


@pytest.mark.parametrize("level", [None, ReadLevel.SESSION, ReadLevel.LINEARIZABLE])
@pytest.mark.parametrize("begin", [[], ["begin"]])
def test_a_leader_shows_followers_the_position_that_a_session_asks_for(tmp_path: Path, level: ReadLevel | None, begin: list[str]) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, _: SetClock) -> None:
        session = await database.session() if level is None else await session_at(database, level)
        await run(session, COUNT)
        assert log.made_readable == 0
        for statement in begin:
            await run(session, statement)
        assert await run(session, "select TRIPLICATE_position()") == [(database.position,)]
        assert log.made_readable == 1

    play_leased(tmp_path, 10.0, scene)


def test_a_session_that_waits_hurries_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, copy = await follower(cluster)
        monkeypatch.setattr(apply_pacing, "INTERVAL_MAX_S", 3600.0)
        monkeypatch.setattr(apply_pacing, "INTERVAL_FACTOR", 1e12)
        monkeypatch.setattr(apply_pacing, "AWAITED_FACTOR", 1)
        writing = await leader.session()
        for index in range(3):
            await run(writing, f"insert into t(a) values ({index})")
            session = await session_at(copy, SESSION, position=leader.position)
            assert await run(session, COUNT) == [(index + 2,)]

    play(tmp_path, scene, 2)
