"""The leader's writing connection, as coroutines use it: on a thread of its own, or for short work on the event loop's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import apsw

from triplicate.errors import EnvironmentFault
from triplicate.runtime import Clock, Timer, UninterruptedFuture, Worker
from triplicate.sql.executor.interrupts import StopFlag, interrupted_by_cancellation
from triplicate.sql.executor.writer_connection import WriterConnection

Result = TypeVar("Result")


class WriterThread:
    """Runs functions on the thread, one at a time and in order. A cancellation of a wait is raised when the function has ended.

    A function may also be called on the loop while the thread is idle, which saves two changes of the thread. It must be short: everything
    else on the loop waits for it.

    Args:
        writer: the connection, used on the thread only.
        name: the database's name, for messages.
    """

    def __init__(self, clock: Clock, worker: Worker, writer: WriterConnection, name: str) -> None:
        self._clock = clock
        self._worker = worker
        self._name = name
        self.writer = writer
        self._last: asyncio.Future[Any] | None = None
        """Of the function that the thread was given last."""

    @property
    def is_idle(self) -> bool:
        """Whether the thread uses the connection neither now nor later, so that the loop may."""
        return self._last is None or self._last.done()

    @property
    def is_unused(self) -> bool:
        """Whether the thread has not used the connection since `begin_use`: all work of the transaction was short."""
        return self._last is None

    def begin_use(self) -> None:
        """A transaction begins, while the thread is idle."""
        assert self.is_idle, "one thread at a time uses the connection"
        self._last = None

    def now(self) -> float:
        """The time of `call_at`, seconds."""
        return self._clock.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop at a time."""
        return self._clock.call_at(when, callback)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop after a delay."""
        return self._clock.call_at(self._clock.monotonic() + delay_s, callback)

    def start_statement(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        """Start a function that `stop` interrupts. The result fails with any error of the function."""
        answer = self._last = interrupted_by_cancellation(stop)
        return self._worker.run(self.with_stop, stop, function, *arguments, answer=answer)

    def with_stop(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that `stop` interrupts, on the thread or, while that is idle, on the loop."""
        self.writer.limit.stop = stop
        try:
            return function(*arguments)
        finally:
            self.writer.limit.clear()

    async def run(self, function: Callable[..., Any], *arguments: Any, on_cancel: Callable[[], None] | None = None) -> Any:
        """Run a function.

        Args:
            on_cancel: called when the wait is cancelled, to interrupt the function.

        Raises:
            EnvironmentFault: SQLite failed where no statement of a client is to blame.
        """
        answer: UninterruptedFuture[Any] = UninterruptedFuture(on_cancel)
        self._last = answer
        try:
            return await self._worker.run(function, *arguments, answer=answer)
        except apsw.Error as error:
            raise self._fault(error) from error

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a short function on the loop, while the thread is idle.

        Raises:
            EnvironmentFault: as `run`.
        """
        assert self.is_idle, "one thread at a time uses the connection"
        try:
            return function(*arguments)
        except apsw.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: apsw.Error) -> EnvironmentFault:
        return EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}")
