"""A transaction of several statements, which holds the leader's writer from its first writing statement to its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.runtime import TasklessFuture, Timer, fail, resolve
from triplicate.sql.core.interface import Prepared, Row, Value
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.writer_hold import Ending, EndRequest, WriterHold
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.interrupts import StopFlag, TransactionLost
from triplicate.sql.storage.sqlstates import FAULTS, from_sqlite


class InteractiveTransaction:
    """Made when the transaction gets the writer. Used by one session, one call at a time.

    It is ended from our side when it runs for too long (25P04), or when its client sends nothing for too long (25P03).

    Args:
        confirm: returns when the log has confirmed that this node led after the call. Raises SqlError.
        waits: the waits of its statements are added to these.
    """

    def __init__(self, thread: WriterThread, settings: NodeSettings, confirm: Callable[[], Awaitable[None]], waits: StatementWaits) -> None:
        self.waits = waits
        self._thread = thread
        self._confirm = confirm
        self._settings = settings
        self._state = WriterHold()
        self._stop = StopFlag()
        """Of the statement that runs, or that ran last."""
        self._is_confirmed = False
        """Whether the log has confirmed that this node led after this transaction got the writer."""
        self.end_request: asyncio.Future[EndRequest] = asyncio.get_running_loop().create_future()
        """For the leadership: done when the transaction is to end."""
        self._outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: list[asyncio.Future[None]] = []
        """Those that wait for the outcome. Each has a future of its own, since a wait may be cancelled and the outcome may not."""
        self._limit_timer = thread.call_later(settings.transaction_limit_s, self._limit_reached)
        self._idle_since = thread.now()
        """When the client got the writer, or when its last statement ended."""
        self._idle_timer: Timer = thread.call_at(self._idle_since + settings.transaction_idle_s, self._check_idle)

    @property
    def over(self) -> bool:
        """Whether it has ended, for any reason."""
        return self._state.is_over

    @property
    def expired(self) -> SqlError | None:
        """Why a limit ended it, or None."""
        return self._state.expired

    async def run(self, function: Callable[..., Any], *arguments: Any, is_short: bool = False) -> Any:
        """Run one of the writer's methods inside the transaction.

        Args:
            is_short: it may run on the loop.

        Raises:
            SqlError: the statement failed; if `over`, the whole transaction did.
        """
        self._check()
        self._state.start()
        self._stop = StopFlag()
        try:
            if is_short and self._thread.is_idle:
                return self._thread.with_stop(self._stop, function, *arguments)
            # A statement that has begun is awaited: the next one must not meet it on the connection.
            return await self._thread.start_statement(self._stop, function, *arguments)
        except TransactionLost as lost:
            self._end(self._state.end(EndRequest(Ending.LOST)))
            raise lost.error from lost
        except FAULTS as error:
            raise from_sqlite(error) from error
        finally:
            self._idle_since = self._thread.now()
            self._end(self._state.finish())

    async def read_short(self, prepared: Prepared, parameters: Sequence[Value]) -> list[Row]:
        """All rows of a reading statement that is short.

        Raises:
            SqlError: as `run`.
        """
        rows: list[Row] = await self.run(self._read_all, prepared, tuple(parameters), is_short=True)
        return rows

    def _read_all(self, prepared: Prepared, parameters: tuple[Value, ...]) -> list[Row]:
        writer = self._thread.writer
        cursor = writer.read(prepared, parameters)
        rows: list[Row] = []
        is_end = False
        try:
            while not is_end:
                further, is_end = writer.fetch(cursor, sys.maxsize)
                rows += further
            return rows
        finally:
            cursor.close(True)

    def is_short(self, prepared: Prepared, parameters: Sequence[Value]) -> bool:
        """Whether a statement may run on the loop, in this transaction."""
        return not self.over and self._thread.is_idle and self._thread.writer.is_short(prepared, parameters)

    def interrupt(self, reason: SqlError) -> None:
        """Interrupt the statement that runs, if one does."""
        if self._state.is_running:
            self._stop.reason = reason

    async def confirm(self) -> None:
        """Return when the log has confirmed that this node led after this transaction got the writer.

        Raises:
            SqlError: 57P01 when this node has ceased to lead.
        """
        if not self._is_confirmed:
            began_s = self.waits.now()
            try:
                await self._confirm()
            finally:
                self.waits.read_s += self.waits.now() - began_s
            self._is_confirmed = True

    async def commit(self, results: Sequence[StatementResult], request_id: str) -> None:
        """End it. Returns when the log has acknowledged it and it is visible.

        Raises:
            SqlError: it failed and nothing of it is stored; 08007: the outcome is unknown.
        """
        self._check()
        self._end(self._state.end(EndRequest(Ending.COMMIT, tuple(results), request_id)))
        await self._known_outcome()

    async def rollback(self) -> None:
        """Undo it; returns when the writer is free. Idempotent."""
        self.abandon()
        await self._known_outcome()

    def abandon(self) -> None:
        """Roll back without waiting."""
        self._end(self._state.end(EndRequest(Ending.ROLLBACK)))

    def resolve(self, error: BaseException | None = None) -> None:
        """For the leadership: the outcome of the transaction is known."""
        self._end(self._state.end(EndRequest(Ending.LOST)))
        if isinstance(error, SqlError):
            self.interrupt(error)  # The limit of the transaction has ended with it, so nothing else would.
        for future in (self._outcome, *self._waiting):
            if error is None:
                resolve(future, None)
            else:
                fail(future, error)
        self._waiting.clear()

    async def _known_outcome(self) -> None:
        """Wait for the outcome. Raises it, if it is an error."""
        if self._outcome.done():
            self._outcome.result()
            return
        waiter: TasklessFuture[None] = TasklessFuture(loop=asyncio.get_running_loop())
        self._waiting.append(waiter)
        await waiter

    def _check(self) -> None:
        """Raises SqlError when it has ended: the error with which the leadership ended, the error of a limit, else 25P02."""
        if self._outcome.done():
            self._outcome.result()
        self._state.check()

    def _end(self, request: EndRequest | None) -> None:
        if request is not None:
            self._idle_timer.cancel()
            self._limit_timer.cancel()
            resolve(self.end_request, request)  # It is cancelled with the leadership that awaits it.

    def _check_idle(self) -> None:
        """The idle limit is reached, unless a statement has run since the timer was set: then set it again."""
        limit_s, now = self._settings.transaction_idle_s, self._thread.now()
        over_at = (now if self._state.is_running else self._idle_since) + limit_s
        if now < over_at:
            self._idle_timer = self._thread.call_at(over_at, self._check_idle)
            return
        self.expire(SqlError("25P03", f"the transaction held the writer and was idle for {limit_s:g} s", hint="Keep transactions short."))

    def _limit_reached(self) -> None:
        limit_s = self._settings.transaction_limit_s
        self.expire(SqlError("25P04", f"the transaction held the writer for {limit_s:g} s", hint="Use several shorter transactions."))

    def expire(self, error: SqlError) -> None:
        """End it by an error of ours, unless its client has ended it. A statement that runs is interrupted."""
        self._end(self._state.expire(error))
        self.interrupt(error)
