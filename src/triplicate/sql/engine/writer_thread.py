"""The leader's writing connection and its thread, as coroutines use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import apsw

from triplicate.errors import EnvironmentFault
from triplicate.runtime import Clock, Timer, Worker
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.writer_connection import WriterConnection


class WriterThread:
    """Runs functions on the thread, one at a time and in order.

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
        return self._worker.run(self._with_stop, stop, function, *arguments)

    def _with_stop(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Any:
        self.writer.limit.stop = stop
        return function(*arguments)

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function, or finish one that `start` began.

        Raises:
            EnvironmentFault: SQLite failed where no statement of a client is to blame.
        """
        return await self.finish(self._worker.run(function, *arguments))

    def start(self, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        """Start a function, for `finish`."""
        return self._worker.run(function, *arguments)

    async def finish(self, running: Awaitable[Any]) -> Any:
        """The result of a function that runs.

        Raises:
            EnvironmentFault: as `run`.
        """
        try:
            return await running
        except apsw.Error as error:
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error
