"""The leader's writing connection and its thread, as coroutines use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import apsw

from triplicate.errors import EnvironmentFault
from triplicate.runtime import Clock, Timer, UninterruptedFuture, Worker
from triplicate.sql.executor.interrupts import StopFlag, interrupted_by_cancellation
from triplicate.sql.executor.writer_connection import WriterConnection


class WriterThread:
    """Runs functions on the thread, one at a time and in order. A cancellation of a wait is raised when the function has ended.

    Args:
        writer: the connection, used on the thread only.
        name: the database's name, for messages.
    """

    def __init__(self, clock: Clock, worker: Worker, writer: WriterConnection, name: str) -> None:
        self._clock = clock
        self._worker = worker
        self._name = name
        self.writer = writer

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop after a delay."""
        return self._clock.call_at(self._clock.monotonic() + delay_s, callback)

    def start_statement(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        """Start a function that `stop` interrupts. The result fails with any error of the function."""
        return self._worker.run(self._with_stop, stop, function, *arguments, answer=interrupted_by_cancellation(stop))

    def _with_stop(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Any:
        self.writer.limit.stop = stop
        return function(*arguments)

    async def run(self, function: Callable[..., Any], *arguments: Any, on_cancel: Callable[[], None] | None = None) -> Any:
        """Run a function.

        Args:
            on_cancel: called when the wait is cancelled, to interrupt the function.

        Raises:
            EnvironmentFault: SQLite failed where no statement of a client is to blame.
        """
        try:
            return await self._worker.run(function, *arguments, answer=UninterruptedFuture(on_cancel))
        except apsw.Error as error:
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error
