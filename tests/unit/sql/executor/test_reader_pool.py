"""The pool of reading connections: what it does at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.runtime import real_host, start_eagerly
from triplicate.sql.executor.reader_pool import ReaderCheckout, ReaderPool, ReadLimits


def test_a_pool_that_is_closed_refuses_and_opens_no_connection_again(tmp_path: Path) -> None:
    path = str(tmp_path / "copy.db")
    connection = apsw.Connection(path)
    connection.execute("create table t (a integer)")
    connection.close()

    def opened() -> int:
        return sum(found.filename.startswith(str(tmp_path)) for found in apsw.connections())

    async def body() -> None:
        pool = ReaderPool(real_host("test"), "db", path, ReadLimits(2, 1, 1.0))
        assert (await pool.examiner.examine("select a from t", 1)).tag == "SELECT"
        columns = await pool.examiner.columns_of("t", 2)
        assert columns is not None
        assert [name for name, _ in columns] == ["a"]
        await pool.close()
        for late in (
            pool.examiner.examine("select a from t", 1),
            pool.examiner.examine("select 1", 2),
            pool.examiner.columns_of("t", 2),
            pool.acquire(),
        ):
            with pytest.raises(SqlError, match="closed") as refused:
                await late
            assert refused.value.sqlstate == "57P01"
        assert opened() == 0

    asyncio.run(body())


def test_a_reader_that_is_given_back_when_the_wait_for_it_ends_is_not_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "copy.db")
    apsw.Connection(path).close()

    async def body() -> None:
        loop = asyncio.get_running_loop()
        pool = ReaderPool(real_host("test"), "db", path, ReadLimits(1, 1, 0.05))
        held = await pool.acquire()
        waiting = loop.create_task(pool.acquire(), name="waiting")
        await asyncio.sleep(0)
        # Both come due in one turn of the loop: the reader is granted, then the wait for it ends.
        loop.call_at(loop.time(), lambda: held.return_reader(committed=False))
        time.sleep(0.1)
        await asyncio.wait([waiting])
        if waiting.exception() is None:
            waiting.result().return_reader(committed=False)
        (await pool.acquire()).return_reader(committed=False)
        await pool.close()

    asyncio.run(body())


def test_long_statements_are_not_remembered(tmp_path: Path) -> None:
    path = str(tmp_path / "copy.db")
    apsw.Connection(path).close()

    async def body() -> None:
        pool = ReaderPool(real_host("test"), "db", path, ReadLimits(1, 1, 1.0))
        for number in range(20):
            await pool.examiner.examine(f"select '{number}{'.' * 500_000}'", 1)
            await pool.examiner.examine(f"select {number}", 1)
        assert sum(map(len, pool.examiner._prepared._entries)) < 1000
        assert len(pool.examiner._prepared) == 20
        await pool.close()

    asyncio.run(body())


def test_a_session_that_is_served_outside_of_a_task_waits_for_a_reader(tmp_path: Path) -> None:
    path = str(tmp_path / "copy.db")
    apsw.Connection(path).close()

    async def body() -> None:
        loop = asyncio.get_running_loop()
        pool = ReaderPool(real_host("test"), "db", path, ReadLimits(1, 1, 30.0))
        held = await pool.acquire()
        tasks: list[asyncio.Task[ReaderCheckout]] = []

        def spawn(rest: Coroutine[Any, Any, ReaderCheckout]) -> asyncio.Task[ReaderCheckout]:
            tasks.append(loop.create_task(rest))
            return tasks[-1]

        loop.call_soon(start_eagerly, pool.acquire(), spawn)
        await asyncio.sleep(0.01)
        held.return_reader(committed=True)
        (await tasks[0]).return_reader(committed=True)
        await pool.close()

    asyncio.run(body())
