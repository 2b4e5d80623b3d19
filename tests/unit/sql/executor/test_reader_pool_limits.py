"""Readers that are kept for too long: by idle transactions, open results, long statements, and for the write-ahead log."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, play, run, state_of
from tests.waiting import eventually
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import EnvironmentFault
from triplicate.runtime import Metrics, real_host
from triplicate.sql import SqlDatabase, SqlSession
from triplicate.sql.core.interface import TransactionStatus
from triplicate.sql.engine import open_results
from triplicate.sql.executor.reader_connection import ReaderConnection

ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c"
Scene = Callable[[Cluster, SqlDatabase], Any]


def play_with(folder: Path, settings: NodeSettings, scene: Scene) -> None:
    """Run a scene with one node of these settings, whose table ``t`` has a thousand rows."""

    async def body(cluster: Cluster) -> None:
        await cluster.start("n1", settings)
        database = await cluster.leader()
        session = await database.session()
        await run(session, "create table t(a)")
        await run(session, _FILL)
        await session.close()
        await scene(cluster, database)

    play(folder, body, nodes=0)


_FILL = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) insert into t select x from c"


async def snapshot(database: SqlDatabase) -> SqlSession:
    session = await database.session()
    await run(session, "begin")
    await run(session, "select count(*) from t")
    return session


def test_an_idle_transaction_that_reads_is_ended(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session = await snapshot(database)
        identity = (await run(session, "select pg_current_xact_id()"))[0][0]
        await eventually(lambda: database.pool.oldest_snapshot_s == 0)
        assert await state_of(run(session, "select a from t")) == "25P03"
        assert session.status is TransactionStatus.FAILED
        assert await state_of(run(session, "insert into t values(1)")) == "25P02"
        await run(session, "rollback")
        assert await run(session, "select count(*) from t") == [(1000,)]
        assert await run(session, "select pg_xact_status($1)", (identity,)) == [("aborted",)]
        writing = await snapshot(database)
        await eventually(lambda: database.pool.oldest_snapshot_s == 0)
        assert await state_of(run(writing, "insert into t values(1)")) == "25P03"
        await run(writing, "rollback")
        await run(writing, "insert into t values(1)")
        ending = await snapshot(database)
        await eventually(lambda: database.pool.oldest_snapshot_s == 0)
        await run(ending, "commit")
        assert await run(ending, "select count(*) from t") == [(1001,)]

    play_with(tmp_path, replace(SETTINGS, read_idle_s=0.1), scene)


@pytest.mark.parametrize("transaction", [False, True])
def test_an_open_result_that_nobody_fetches_is_ended(tmp_path: Path, transaction: bool) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session = await database.session()
        if transaction:
            await run(session, "begin")
        cursor = await session.start(await session.prepare("select a from t"), ())
        assert len(await cursor.fetch(10)) == 10
        await eventually(lambda: database.pool.oldest_snapshot_s == 0)
        other = await database.session()
        assert await run(other, "select count(*) from t") == [(1000,)]
        assert len(await cursor.fetch(190)) == 190  # fetched with the first rows
        assert await state_of(cursor.fetch(10)) == "25P03"
        await cursor.close()
        await run(session, "rollback")
        assert len(await run(session, "select a from t")) == 1000

    play_with(tmp_path, replace(SETTINGS, read_idle_s=0.1), scene)


def test_a_transaction_that_goes_on_reading_is_not_idle_but_ends_at_the_age_limit(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        loop = asyncio.get_running_loop()
        begun, state = loop.time(), ""
        session = await snapshot(database)
        while not state:
            state = await state_of(run(session, "select count(*) from t"))
            await asyncio.sleep(0.01)
        assert state == "25P04"
        assert loop.time() - begun >= 0.5
        await run(session, "rollback")

    play_with(tmp_path, replace(SETTINGS, read_idle_s=30.0, snapshot_limit_s=0.5), scene)


def test_a_statement_that_reads_for_too_long_is_interrupted(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session = await database.session()
        assert await state_of(run(session, ENDLESS)) == "25P04"
        assert await run(session, "select count(*) from t") == [(1000,)]

    play_with(tmp_path, replace(SETTINGS, snapshot_limit_s=0.1), scene)


def test_idle_transactions_leave_readers_to_single_statements_and_give_way_to_others(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        idle = [await snapshot(database) for _ in range(3)]
        single = await database.session()
        assert await run(single, "select count(*) from t") == [(1000,)]
        # A fourth transaction has to wait, and gets the reader that has been idle for longest.
        fourth = await snapshot(database)
        assert await run(fourth, "select count(*) from t") == [(1000,)]
        assert await state_of(run(idle[0], "select count(*) from t")) == "25P03"
        assert await run(idle[1], "select count(*) from t") == [(1000,)]
        for session in (*idle, fourth):
            await session.close()
        assert database.pool.oldest_snapshot_s == 0

    play_with(tmp_path, replace(SETTINGS, reader_connections=4, reader_wait_s=1.0), scene)


def test_readers_that_are_in_use_are_not_taken_for_others(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session, other = await database.session(), await database.session()
        endless = asyncio.get_running_loop().create_task(state_of(run(session, ENDLESS)))
        await eventually(lambda: database.pool.oldest_snapshot_s > 0)
        assert await state_of(run(other, "select 1 where 'a' like 'a'")) == "53300"
        assert await run(other, "select 1") == [(1,)]  # A short statement needs none of the pool's connections.
        session.cancel()
        assert await endless == "57014"
        assert await run(other, "select 1 where 'a' like 'a'") == [(1,)]

    play_with(tmp_path, replace(SETTINGS, reader_connections=1, reader_wait_s=0.2), scene)


def test_a_snapshot_that_holds_the_write_ahead_log_back_is_ended_and_the_log_emptied(tmp_path: Path) -> None:
    limit = 256 * 1024

    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        wal = Path(database.path + "-wal")
        writer, old = await database.session(), await snapshot(database)
        await asyncio.sleep(1.1)
        for _ in range(100):
            await run(writer, "insert into t values(zeroblob(20000))")
        assert wal.stat().st_size <= 3 * limit
        assert await state_of(run(old, "select count(*) from t")) == "25P04"
        await run(old, "rollback")
        assert await run(old, "select count(*) from t") == [(1100,)]

    play_with(tmp_path, replace(SETTINGS, wal_limit_bytes=limit), scene)


def test_readers_that_overlap_do_not_keep_the_write_ahead_log_growing(tmp_path: Path) -> None:
    limit = 256 * 1024

    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        wal = Path(database.path + "-wal")
        writer = await database.session()
        stop = False

        async def read() -> None:
            session = await database.session()
            while not stop:
                await run(session, "select sum(length(a)) from t where 'a' like 'a'")

        readers = [asyncio.get_running_loop().create_task(read()) for _ in range(4)]
        largest = 0
        for _ in range(100):
            await run(writer, "insert into t values(zeroblob(20000))")
            largest = max(largest, wal.stat().st_size)
        stop = True
        await asyncio.gather(*readers)
        assert largest <= 3 * limit

    play_with(tmp_path, replace(SETTINGS, wal_limit_bytes=limit, reader_threads=4), scene)


def test_the_oldest_snapshot_and_the_write_ahead_log_are_measured(tmp_path: Path) -> None:
    async def body() -> None:
        metrics = Metrics()
        path = str(tmp_path / "main.db")
        database = SqlDatabase(real_host("test", seed=1), "db", b"i" * 16, path, SETTINGS, metrics=metrics)
        await database.open()

        def value(name: str) -> float:
            lines = metrics.expose().decode().splitlines()
            return float(next(line for line in lines if line.startswith(f'{name}{{database="db"}}')).rpartition(" ")[2])

        assert value("triplicate_database_oldest_snapshot_seconds") == 0
        session = await database.session()
        await run(session, "begin")
        await run(session, "select 1")
        await eventually(lambda: value("triplicate_database_oldest_snapshot_seconds") >= 0.01)
        assert value("triplicate_database_wal_bytes") >= 0
        await database.close()

    asyncio.run(asyncio.wait_for(body(), 20))


def test_a_number_that_was_asked_for_goes_along_when_the_snapshot_ends_before_the_writer_is_free(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        other, session = await database.session(), await snapshot(database)
        identity = (await run(session, "select pg_current_xact_id()"))[0][0]
        await run(other, "begin immediate")
        writing = asyncio.get_running_loop().create_task(run(session, "insert into t values(1)"), name="writing")
        await eventually(lambda: database.pool.oldest_snapshot_s == 0)
        await run(other, "rollback")
        await writing
        await run(session, "commit")
        assert await run(other, "select pg_xact_status($1)", (identity,)) == [("committed",)]

    play_with(tmp_path, replace(SETTINGS, read_idle_s=1.0, transaction_idle_s=5.0), scene)


def test_a_write_ahead_log_that_a_copy_for_a_snapshot_needs_delays_nobody_and_ends_no_reader(tmp_path: Path) -> None:
    limit = 256 * 1024

    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        wal = Path(database.path + "-wal")
        writer = await database.session()
        await run(writer, "insert into t select zeroblob(20000) from t limit 200")
        await eventually(lambda: wal.stat().st_size <= limit)
        copying = asyncio.get_running_loop().create_task(database.snapshots.copy(64 * 1024), name="copying")
        await eventually(lambda: database.snapshots.holds_wal)
        old = await snapshot(database)
        await asyncio.sleep(1.1)
        took_s: list[float] = []
        for _ in range(40):
            begun = asyncio.get_running_loop().time()
            await run(writer, "insert into t values(zeroblob(20000))")
            took_s.append(asyncio.get_running_loop().time() - begun)
        assert statistics.median(took_s) < 0.05, "a busy machine delays some, and the copy would delay all"
        assert wal.stat().st_size > 2 * limit
        assert await run(old, "select count(*) from t") == [(1200,)]
        await run(old, "rollback")
        assert not copying.done()
        copying.cancel()
        await asyncio.wait([copying])
        await run(writer, "insert into t values(1)")
        await eventually(lambda: wal.stat().st_size <= limit)

    play_with(tmp_path, replace(SETTINGS, wal_limit_bytes=limit), scene)


def test_a_write_ahead_log_that_was_large_before_does_not_keep_a_snapshot_from_being_made(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session = await database.session()
        for _ in range(100):
            await run(session, "insert into t values(zeroblob(20000))")
        assert Path(database.path + "-wal").stat().st_size > 1024 * 1024
        copy = await database.snapshots.copy(0)
        assert copy.position == database.position
        await copy.discard()

    play_with(tmp_path, replace(SETTINGS, snapshot_wal_limit_bytes=1024 * 1024), scene)


def test_a_snapshot_is_given_up_when_the_write_ahead_log_grows_too_much_meanwhile(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session = await database.session()
        await run(session, "insert into t select zeroblob(20000) from t limit 200")
        copying = asyncio.get_running_loop().create_task(database.snapshots.copy(256 * 1024), name="copying")
        await eventually(lambda: database.snapshots.holds_wal)
        for _ in range(400):
            await run(session, "insert into t values(zeroblob(20000))")
        with pytest.raises(EnvironmentFault, match="write-ahead log"):
            await copying

    play_with(tmp_path, replace(SETTINGS, snapshot_wal_limit_bytes=1024 * 1024), scene)


def test_a_result_that_is_too_large_to_keep_shows_nobody_else_its_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_results, "_DRAINED_ROWS", 300)

    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session, other = await database.session(), await database.session()
        await run(session, "begin")
        await run(session, "savepoint s")
        cursor = await session.start(await session.prepare("select a from t"), ())
        assert len(await cursor.fetch(10)) == 10
        assert await state_of(run(session, "insert into t values(0)")) == "54000"
        await run(other, "insert into t values(1)")
        assert await run(other, "select count(*) from t") == [(1001,)]
        await run(session, "rollback to s")
        await run(session, "rollback")
        assert await run(session, "select count(*) from t") == [(1001,)]

    settings = replace(SETTINGS, reader_connections=1, reader_wait_s=0.5, read_idle_s=30.0, transaction_idle_s=0.1)
    play_with(tmp_path, settings, scene)


def test_a_statement_whose_client_goes_while_it_begins_shows_nobody_else_its_old_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, going = ReaderConnection.start, list[asyncio.Task[Any]]()
    answers: list[Any] = []
    """Kept: a cursor that nothing refers to any more ends its statement by itself."""

    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        loop, session, other = asyncio.get_running_loop(), await database.session(), await database.session()
        prepared = await session.prepare("select a from t")

        def gone_meanwhile(self: ReaderConnection, *arguments: Any) -> Any:
            answer = start(self, *arguments)
            answers.append(answer)
            loop.call_soon_threadsafe(going[0].cancel)
            time.sleep(0.05)
            return answer

        monkeypatch.setattr(ReaderConnection, "start", gone_meanwhile)
        going.append(loop.create_task(session.start(prepared, ()), name="going"))
        await asyncio.wait(going)
        monkeypatch.undo()
        assert going[0].cancelled()
        await run(other, "insert into t values(1)")
        assert await run(other, "select count(*) from t") == [(1001,)]

    play_with(tmp_path, replace(SETTINGS, reader_connections=1, reader_wait_s=0.5), scene)


def test_a_result_of_a_transaction_that_was_ended_holds_the_write_ahead_log_back_no_longer(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, database: SqlDatabase) -> None:
        session, other = await database.session(), await database.session()
        await run(session, "begin immediate")
        cursor = await session.start(await session.prepare("select a from t"), ())
        assert len(await cursor.fetch(10)) == 10
        await run(other, "insert into t values(1)")  # Waits for the end of the transaction, which says nothing.
        await run(other, "insert into t values(2)")
        with apsw.Connection(database.path) as connection:
            ((busy, *_),) = connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        assert busy == 0
        assert await state_of(cursor.fetch(500)) == "25P03"
        await run(session, "rollback")

    play_with(tmp_path, replace(SETTINGS, transaction_idle_s=0.1), scene)
