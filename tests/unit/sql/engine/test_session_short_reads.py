"""Reads that a session answers without a thread, and those that it hands to one."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from tests.unit.sql.held_log import HeldLog, SetClock, database_at, play_leased
from tests.waiting import eventually
from triplicate.errors import LogFenced, SqlError
from triplicate.runtime import start_eagerly
from triplicate.sql import SqlDatabase
from triplicate.sql.core.interface import Row
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.executor.reader_connection import ReaderConnection

ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c"
FILL = "insert into t with recursive c(x) as (select 1 union all select x + 1 from c limit 1000) select x, 'a' from c"


async def filled(cluster: Cluster) -> SqlDatabase:
    database = await cluster.leader()
    session = await database.session()
    await run(session, "create table t(id integer primary key, a text)")
    await run(session, FILL)
    return database


def count_thread_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that start in a reader's thread from now on."""
    started: list[str] = []
    original = ReaderConnection.start

    def start(self: ReaderConnection, prepared: Any, *arguments: Any) -> Any:
        started.append(prepared.sql)
        return original(self, prepared, *arguments)

    monkeypatch.setattr(ReaderConnection, "start", start)
    return started


def test_a_warm_point_read_makes_no_task(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await filled(cluster)
        name = next(one for one in ("n1", "n2") if one != cluster.leader_name())
        for database in (leader, await cluster.serving(name, leader.position)):
            session = await database.session()
            answers: list[list[Row]] = []

            async def read(number: int, session: SqlSession = session, answers: list[list[Row]] = answers) -> None:
                answers.append(await run(session, "select a from t where id = $1", (number,)))

            await read(1)
            assert start_eagerly(read(2), asyncio.get_running_loop().create_task) is None
            assert answers == [[("a",)], [("a",)]]

    play(tmp_path, scene, nodes=2)


def test_a_warm_transaction_that_reads_makes_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await filled(cluster)
        session, other = await database.session(), await database.session()
        answers: list[list[Row]] = []

        async def read(*, change: bool = False) -> None:
            await run(session, "begin")
            answers.append(await run(session, "select a from t where id = $1", (1,)))
            if change:
                await run(other, "update t set a = 'b' where id = 1")
            answers.append(await run(session, "select a from t where id = $1", (1,)))
            await run(session, "commit")

        await read()
        started = count_thread_reads(monkeypatch)
        assert start_eagerly(read(), asyncio.get_running_loop().create_task) is None
        await read(change=True)
        await read()
        assert answers == [[("a",)]] * 6 + [[("b",)]] * 2
        assert started == []
        assert database.pool.oldest_snapshot_s == 0

    play(tmp_path, scene)


def test_a_long_statement_of_a_transaction_reads_its_snapshot_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await filled(cluster)
        session, other = await database.session(), await database.session()
        await run(session, "begin")
        assert await run(session, "select a from t where id = 1") == [("a",)]
        await run(other, "delete from t where id > 500")
        started = count_thread_reads(monkeypatch)
        assert await run(session, "select id from t order by id") == [(number,) for number in range(1, 1001)]
        assert started == ["select id from t order by id"]
        session.cancel()
        assert await state_of(run(session, "select abs(-9223372036854775808)")) == "22003"
        assert await state_of(run(session, "select 1")) == "25P02"
        await run(session, "rollback")
        assert await run(session, "select count(*) from t where id > 0") == [(500,)]

    play(tmp_path, scene)


def test_a_result_over_a_limit_is_whole_and_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await filled(cluster)).session()
        started = count_thread_reads(monkeypatch)
        for _ in range(12):
            assert await run(session, "select id from t order by id") == [(number,) for number in range(1, 1001)]
            assert await run(session, "select id, random() is null from t") == [(number, 0) for number in range(1, 1001)]
            assert await run(session, "select id from t where id > $1 order by id", (900,)) == [(one,) for one in range(901, 1001)]
        assert len(started) == 24

    play(tmp_path, scene)


def test_long_statements_of_many_clients_do_not_keep_short_ones_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await filled(cluster)
        sessions = [await database.session() for _ in range(3)]
        long = [asyncio.get_running_loop().create_task(state_of(run(session, ENDLESS))) for session in sessions]
        await eventually(lambda: database.pool.oldest_snapshot_s > 0)
        started = count_thread_reads(monkeypatch)
        short = await database.session()
        for number in range(1, 500):
            assert await run(short, "select a from t where id = $1", (number,)) == [("a",)]
        assert not any(task.done() for task in long)
        assert [sql for sql in started if sql != ENDLESS] == []
        for session in sessions:
            session.cancel()
        assert await asyncio.gather(*long) == ["57014"] * 3

    play(tmp_path, scene)


def test_a_cancel_after_a_short_read_changes_nothing(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await filled(cluster)).session()
        for _ in range(3):
            assert await run(session, "select a from t where id = 1") == [("a",)]
            session.cancel()

    play(tmp_path, scene)


def test_a_short_read_without_a_lease_waits_for_an_append(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        sessions = [await database.session() for _ in range(3)]
        await run(sessions[0], "select a from t")
        log.held = True
        before = log.noops
        reads = [asyncio.get_running_loop().create_task(run(session, "select a from t")) for session in sessions]
        await log.sent(1)
        assert not any(read.done() for read in reads)
        log.release()
        assert await asyncio.gather(*reads) == [[(1,)]] * 3
        assert log.noops - before <= 2

    play_leased(tmp_path, 0.0, scene)


def test_a_short_read_of_a_deposed_leader_is_refused(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        await run(session, "select a from t")
        log.held = True
        reading = asyncio.get_running_loop().create_task(state_of(run(session, "select a from t")))
        await log.sent(1)
        log.release(LogFenced("another leads"))
        assert await reading == "57P01"

    play_leased(tmp_path, 0.0, scene)


def test_a_replaced_file_is_read_through_another_connection(tmp_path: Path) -> None:
    async def body() -> None:
        database, _ = database_at(tmp_path)
        await database.open()
        other = tmp_path / "other.db"
        for path, value in ((database.path, 1), (str(other), 2)):
            if value == 2:
                shutil.copy(database.path, other)
            connection = apsw.Connection(path)
            connection.execute("create table if not exists t(a)")
            connection.execute("insert into t values(?)", (value,))
            connection.close()
        session, pool = await database.session(), database.pool
        select = await session.prepare("select a from t")
        assert await run(session, "select a from t") == [(1,)]
        await database.replace(lambda: os.replace(other, database.path))
        assert await run(await database.session(), "select a from t") == [(1,), (2,)]
        with pytest.raises(SqlError) as refused:
            pool.read_now(select, (), 1)
        assert refused.value.sqlstate == "57P01"
        await database.close()
        assert not [found for found in apsw.connections() if found.filename.startswith(str(tmp_path))]

    asyncio.run(asyncio.wait_for(body(), 20))


def test_a_view_of_constants_is_read_as_it_is_now(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        view = "create view v as with s(x) as (values (1), (2), ({})) select x from s order by 1"
        for last in (3, 4):
            await run(session, view.format(last))
            assert (await run(session, "select * from v"))[-1] == (last,)
            assert (await run(session, "select * from v where x not like ''"))[-1] == (last,), "in a thread"
            await run(session, "drop view v")

    play(tmp_path, scene)
