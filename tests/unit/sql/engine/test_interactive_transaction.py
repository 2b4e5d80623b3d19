"""The limits and the end of a transaction that holds the writer, by a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.unit.sql.cluster import SETTINGS
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.writer_hold import Ending
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.sqlite_file import open_store

Result = TypeVar("Result")
IDLE_S = SETTINGS.transaction_idle_s


class MovedClock:
    """A clock with timers, which `move` calls."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[_MovedTimer] = []

    def monotonic(self) -> float:
        return self.now

    elapsed = monotonic

    def wall_us(self) -> int:
        return 0

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> _MovedTimer:
        timer = _MovedTimer(when, lambda: callback(*args))
        self._timers.append(timer)
        return timer

    def move(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self._timers if timer.when <= self.now]
        self._timers = [timer for timer in self._timers if timer.when > self.now]
        for timer in due:
            if not timer.is_cancelled:
                timer.callback()

    @property
    def live_timers(self) -> int:
        return sum(not timer.is_cancelled for timer in self._timers)


class _MovedTimer:
    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class EndedByTest:
    """A worker whose function ends when the test says so."""

    def run(self, _function: Callable[..., Result], *_: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        self.answer: asyncio.Future[Any] = answer or asyncio.get_running_loop().create_future()
        return self.answer

    async def close(self) -> None:
        return


class HeldTransaction:
    """A transaction with the writer of an empty database."""

    def __init__(self, folder: Path, settings: NodeSettings = SETTINGS) -> None:
        path = str(folder / "main.db")
        open_store(path, b"i" * 16)
        self.clock = MovedClock()
        self.worker = EndedByTest()
        self.confirmations = 0
        self.writer = WriterConnection(path, TransactionIds(1))
        self.writer.begin()
        thread = WriterThread(self.clock, self.worker, self.writer, "db")
        self.transaction = InteractiveTransaction(thread, settings, self._confirm, StatementWaits(self.clock.monotonic))

    async def _confirm(self) -> None:
        self.confirmations += 1


async def step(transaction: InteractiveTransaction) -> None:
    """A short statement."""
    await transaction.run(lambda: None, is_short=True)


def test_the_idle_limit_counts_from_the_end_of_the_last_statement(tmp_path: Path) -> None:
    async def scene() -> None:
        stage = HeldTransaction(tmp_path)
        for _ in range(4):
            stage.clock.move(0.75 * IDLE_S)
            await step(stage.transaction)
        assert not stage.transaction.over
        stage.clock.move(0.5 * IDLE_S)
        stage.clock.move(0.49 * IDLE_S)
        assert not stage.transaction.over
        stage.clock.move(0.02 * IDLE_S)
        assert stage.transaction.expired is not None
        assert stage.transaction.expired.sqlstate == "25P03"
        assert stage.transaction.end_request.result().ending is Ending.EXPIRED
        assert stage.clock.live_timers == 0

    asyncio.run(scene())


def test_a_transaction_whose_statement_runs_is_not_idle(tmp_path: Path) -> None:
    async def scene() -> None:
        stage = HeldTransaction(tmp_path)
        running = asyncio.get_running_loop().create_task(stage.transaction.run(lambda: None))
        await asyncio.sleep(0)
        for _ in range(5):
            stage.clock.move(0.6 * IDLE_S)
        assert not stage.transaction.over
        stage.worker.answer.set_result(None)
        await running
        stage.clock.move(0.9 * IDLE_S)
        assert not stage.transaction.over
        stage.clock.move(0.2 * IDLE_S)
        assert stage.transaction.over
        with pytest.raises(SqlError) as ended:
            await step(stage.transaction)
        assert ended.value.sqlstate == "25P03"

    asyncio.run(scene())


def test_a_wait_that_is_cancelled_leaves_the_outcome_to_others(tmp_path: Path) -> None:
    async def scene() -> None:
        stage = HeldTransaction(tmp_path)
        committing = asyncio.get_running_loop().create_task(stage.transaction.commit((), ""))
        await asyncio.sleep(0)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        rolling_back = asyncio.get_running_loop().create_task(stage.transaction.rollback())
        await asyncio.sleep(0)
        assert not rolling_back.done()
        assert stage.transaction.end_request.result().ending is Ending.COMMIT
        stage.transaction.resolve(SqlError("57P01", "it has gone"))
        with pytest.raises(SqlError, match="it has gone"):
            await rolling_back
        with pytest.raises(SqlError, match="it has gone"):
            await step(stage.transaction)

    asyncio.run(scene())


def test_the_leadership_is_confirmed_once(tmp_path: Path) -> None:
    async def scene() -> None:
        stage = HeldTransaction(tmp_path)
        await stage.transaction.confirm()
        await stage.transaction.confirm()
        assert stage.confirmations == 1

    asyncio.run(scene())
