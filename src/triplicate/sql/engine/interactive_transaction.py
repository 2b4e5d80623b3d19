"""A transaction of several statements, which holds the leader's writer from its first writing statement to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.runtime import Timer, fail, resolve
from triplicate.sql.core.records import StatementResult
from triplicate.sql.core.writer_hold import Ending, EndRequest, WriterHold
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.interrupts import StopFlag, TransactionLost
from triplicate.sql.storage.sqlstates import from_sqlite


class InteractiveTransaction:
    """Made when the transaction gets the writer. Used by one session, one call at a time.

    It is ended from our side when it runs for too long (25P04), or when its client sends nothing for too long (25P03).
    """

    def __init__(self, thread: WriterThread, settings: NodeSettings) -> None:
        self._thread = thread
        self._settings = settings
        self._state = WriterHold()
        self._stop = StopFlag()
        """Of the statement that runs, or that ran last."""
        self.confirmed = False
        """Whether the log has confirmed that this node led after this transaction got the writer."""
        self.end_request: asyncio.Future[EndRequest] = asyncio.get_running_loop().create_future()
        """For the leadership: done when the transaction is to end."""
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._limit_timer = thread.call_later(settings.transaction_limit_s, self._limit_reached)
        self._idle_timer: Timer = thread.call_later(settings.transaction_idle_s, self._idle_limit_reached)

    @property
    def over(self) -> bool:
        """Whether it has ended, for any reason."""
        return self._state.is_over

    @property
    def expired(self) -> SqlError | None:
        """Why a limit ended it, or None."""
        return self._state.expired

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of the writer's methods inside the transaction.

        Raises:
            SqlError: the statement failed; if `over`, the whole transaction did.
        """
        self._state.start()
        self._idle_timer.cancel()
        self._stop = StopFlag()
        try:
            # A statement that has begun is awaited: the next one must not meet it on the connection.
            return await self._thread.start_statement(self._stop, function, *arguments)
        except apsw.Error as error:
            raise from_sqlite(error) from error
        except TransactionLost as lost:
            self._end(self._state.end(EndRequest(Ending.LOST)))
            raise lost.error from lost
        finally:
            self._end(self._state.finish())
            if not self._state.is_over:
                self._idle_timer = self._thread.call_later(self._settings.transaction_idle_s, self._idle_limit_reached)

    def interrupt(self, reason: SqlError) -> None:
        """Interrupt the statement that runs, if one does."""
        if self._state.is_running:
            self._stop.reason = reason

    async def commit(self, results: Sequence[StatementResult], request_id: str) -> None:
        """End it. Returns when the log has acknowledged it and it is visible.

        Raises:
            SqlError: it failed and nothing of it is stored; 08007: the outcome is unknown.
        """
        self._state.check()
        self._end(self._state.end(EndRequest(Ending.COMMIT, tuple(results), request_id)))
        await asyncio.shield(self.outcome)

    async def rollback(self) -> None:
        """Undo it; returns when the writer is free. Idempotent."""
        self.abandon()
        await asyncio.shield(self.outcome)

    def abandon(self) -> None:
        """Roll back without waiting."""
        self._end(self._state.end(EndRequest(Ending.ROLLBACK)))

    def resolve(self, error: BaseException | None = None) -> None:
        """For the leadership: the outcome of the transaction is known."""
        self._end(self._state.end(EndRequest(Ending.LOST)))
        if isinstance(error, SqlError):
            self.interrupt(error)  # The limit of the transaction has ended with it, so nothing else would.
        if error is None:
            resolve(self.outcome, None)
        else:
            fail(self.outcome, error)

    def _end(self, request: EndRequest | None) -> None:
        if request is not None:
            self._idle_timer.cancel()
            self._limit_timer.cancel()
            resolve(self.end_request, request)  # It is cancelled with the leadership that awaits it.

    def _idle_limit_reached(self) -> None:
        limit_s = self._settings.transaction_idle_s
        self._expire(SqlError("25P03", f"the transaction held the writer and was idle for {limit_s:g} s", hint="Keep transactions short."))

    def _limit_reached(self) -> None:
        limit_s = self._settings.transaction_limit_s
        self._expire(SqlError("25P04", f"the transaction held the writer for {limit_s:g} s", hint="Use several shorter transactions."))

    def _expire(self, error: SqlError) -> None:
        self._end(self._state.expire(error))
        self.interrupt(error)
