from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import triplicate
from triplicate.config import ClientSettings, NodeSettings, SecuritySettings
from triplicate.errors import ConfigError, EnvironmentFault, SqlError
from triplicate.testing import MemoryCluster


def play(scene: Callable[[MemoryCluster], Awaitable[None]]) -> None:
    async def body() -> None:
        async with asyncio.timeout(60), MemoryCluster() as cluster:
            await scene(cluster)

    asyncio.run(body())


def test_statements_return_rows_counts_and_row_ids() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        await database.execute("create table t(id integer primary key, a)")
        inserted = await database.execute("insert into t(a) values (:a) returning id, a", {"a": "x"})
        assert (inserted.columns, inserted.rows, inserted.rows_changed, inserted.last_row_id) == (("id", "a"), [(1, "x")], 1, 1)
        assert await database.execute_many("insert into t(a) values (?)", [("y",), ("z",)]) == 2
        read = await database.execute("select a from t where id > ? order by id", (1,))
        assert (list(read), len(read), read[0], read.value, read.rows_changed, read.last_row_id) == (
            [("y",), ("z",)], 2, ("y",), "y", -1, None,
        )  # fmt: skip
        assert (await database.execute("update t set a = 1 where id > 9")).rows_changed == 0

    play(scene)


def test_a_transaction_is_committed_at_the_end_of_its_block_and_undone_after_an_error() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        await database.execute("create table t(a unique)")
        async with database.transaction() as transaction:
            await transaction.execute("insert into t values (1)")
            with pytest.raises(SqlError, match="UNIQUE"):
                await transaction.execute("insert into t values (1)")
            await transaction.execute_many("insert into t values (?)", [(2,), (3,)])

        async def fails() -> None:
            async with database.transaction(immediate=True) as transaction:
                await transaction.execute("delete from t")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fails()
        assert (await database.execute("select a from t order by a")).rows == [(1,), (2,), (3,)]

    play(scene)


def test_a_transaction_whose_statement_was_cancelled_is_not_committed() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        await database.execute("create table t(a)")
        slow = "with recursive c(x) as (select 1 union all select x + 1 from c) insert into t select x from c limit 100000000"

        async def goes_on_after_a_timeout() -> None:
            async with database.transaction() as transaction:
                await transaction.execute("insert into t values (0)")
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await transaction.execute(slow)

        with pytest.raises(SqlError) as failure:
            await goes_on_after_a_timeout()
        assert failure.value.sqlstate == "25P02"
        assert (await database.execute("select count(*) from t")).value == 0

    play(scene)


def test_transactions_are_not_begun_by_single_statements() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        with pytest.raises(SqlError) as failure:
            await database.execute("begin")
        assert failure.value.sqlstate == "25001"
        await database.execute_script("create table t(a); begin; insert into t values (1); commit; begin; insert into t values (2)")
        assert (await database.execute("select a from t")).rows == [(1,)]

    play(scene)


def test_rows_are_streamed_and_a_stream_may_end_early() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 2500) select x from c"
        assert [row[0] async for row in database.stream(numbers)] == list(range(1, 2501))
        stream = database.stream(numbers)
        assert await anext(stream) == (1,)
        await stream.aclose()  # type: ignore[attr-defined]

    play(scene)


def test_tasks_use_a_database_at_the_same_time() -> None:
    async def scene(cluster: MemoryCluster) -> None:
        database = await cluster.database()
        await database.execute("create table t(a)")
        await asyncio.gather(*(database.execute("insert into t values (?)", (number,)) for number in range(100)))
        assert (await database.execute("select count(*), sum(a) from t")).rows == [(100, 4950)]

    play(scene)


def test_a_folder_keeps_its_database_and_admits_one_user(tmp_path: Path) -> None:
    async def body() -> None:
        async with triplicate.database(tmp_path / "app") as database:
            await database.execute("create table t(a)")
            await database.execute("insert into t values ('kept')")
            with pytest.raises(EnvironmentFault, match="in use by this process"):
                async with triplicate.database(tmp_path / "app"):
                    pass
        async with triplicate.database(os.fspath(tmp_path / "app"), create=False) as database:
            assert database.is_leader
            assert (await database.execute("select a from t")).rows == [("kept",)]
            with pytest.raises(EnvironmentFault, match="does not listen"):
                await database.dsn()
        with pytest.raises(SqlError, match="does not exist"):
            async with triplicate.database(tmp_path / "app", "other", create=False):
                pass

    asyncio.run(body())


def test_a_commit_to_a_folder_is_synced_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fdatasync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    async def body() -> None:
        async with triplicate.database(tmp_path / "app") as database:
            await database.execute("create table t(a)")
            for statement in ("insert into t values (1)", "update t set a = 2", "delete from t"):
                synced.clear()
                await database.execute(statement)
                assert any(path.endswith(".journal") for path in synced), statement
            synced.clear()
            async with database.transaction() as transaction:
                await transaction.execute("insert into t values (3)")
            assert any(path.endswith(".journal") for path in synced)

    monkeypatch.setattr(os, "fdatasync", noted)
    asyncio.run(body())


def test_a_database_whose_disk_has_failed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with triplicate.database(tmp_path / "app", client=ClientSettings(add_timeout_s=0.2)) as database:
            await database.execute("create table t(a)")

            def fail(descriptor: int) -> None:
                raise OSError(errno.EIO, "the disk is broken")

            monkeypatch.setattr(os, "fdatasync", fail)
            with pytest.raises(SqlError) as failure:
                await database.execute("insert into t values (1)")
            assert failure.value.sqlstate in ("08007", "57P01")
            with pytest.raises(EnvironmentFault, match=r"the disk is broken.*open it again"):
                await database.execute("select 1")
            monkeypatch.undo()
        async with triplicate.database(tmp_path / "app") as database:
            assert (await database.execute("select count(*) from t")).value in (0, 1)

    asyncio.run(body())


def test_a_node_joins_another_cluster_under_its_own_name_only() -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match="settings=NodeSettings"):
            async with triplicate.database("sqlite:///nowhere/metadata.db"):
                pass

    asyncio.run(body())


def test_a_port_without_protection_is_refused_where_security_is_required() -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match=r"node\.tls"):
            async with triplicate.database("memory:", port=0, security=SecuritySettings(required=True), settings=NodeSettings()):
                pass

    asyncio.run(body())
