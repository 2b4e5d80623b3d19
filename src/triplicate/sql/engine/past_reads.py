"""The past as one session reads it: its moves in time, the sessions of single queries, and the waits for copies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.runtime import TaskScope, fail, has_result, resolve
from triplicate.sql.core.interface import TransactionStatus
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.transaction_block import failed_transaction
from triplicate.sql.engine.session_database import SessionDatabase


class PastSession(Protocol):
    """A session that a single query reads the past in."""

    def cancel(self) -> None: ...

    def end(self, reason: SqlError) -> None: ...

    async def close(self) -> None: ...


class PastReads:
    """See the module's text. One per session.

    Args:
        waits: the waits for copies are added to these.
    """

    def __init__(self, waits: StatementWaits) -> None:
        self._waits = waits
        self._waiter: asyncio.Future[SessionDatabase] | None = None
        """Fails when the wait for a copy is interrupted."""
        self._sessions: dict[int, PastSession] = {}
        """The sessions of queries that have not ended, by their identities."""
        self._on_close: Callable[[], object] | None = None

    async def moved(self, database: SessionDatabase, status: TransactionStatus, point: str | None) -> SessionDatabase:
        """The database that a session reads from now on: as it was at a point, or as it is for None.

        Raises:
            SqlError: 25001, a transaction is open; the reason of `cancel`. See `PastDatabases.open`.
        """
        if status is not TransactionStatus.IDLE:
            if point is None and database.as_of is None:
                return database
            raise SqlError("25001", "triplicate.as_of cannot be changed inside a transaction block")
        found = database.present if point is None else await self._opened(database, point)
        if database.as_of is not None:
            database.leave()
        return found

    async def open(self, database: SessionDatabase, status: TransactionStatus, point: str, *, holds_writer: bool) -> SessionDatabase:
        """The database as it was at a point, for a session that is given to `add` next.

        Args:
            holds_writer: whether the open transaction has the writer, which nobody else has while it waits.

        Raises:
            SqlError: 25001, it has; 25P02, the transaction has failed; the reason of `cancel`. See `PastDatabases.open`.
        """
        if status is TransactionStatus.FAILED:
            raise failed_transaction()
        if holds_writer:
            raise SqlError(
                "25001",
                "AS OF cannot be used in a transaction that has written",
                hint="Run the query before the first change, or on another connection: others could not write while it waits.",
            )
        return await self._opened(database, point)

    def add(self, session: PastSession, reads: PastReads) -> None:
        """A session of a query has begun. `reads` is its own."""
        self._sessions[id(session)] = session
        reads._on_close = lambda: self._sessions.pop(id(session), None)

    def cancel(self, reason: SqlError) -> None:
        """End the wait for a copy by an error, and interrupt the queries that run. The copy is still built."""
        self._interrupt(reason)
        for session in list(self._sessions.values()):
            session.cancel()

    def end(self, reason: SqlError) -> None:
        """As `cancel`, and end the sessions of queries, because the node ends this one."""
        self._interrupt(reason)
        for session in list(self._sessions.values()):
            session.end(reason)

    def _interrupt(self, reason: SqlError) -> None:
        if self._waiter is not None:
            fail(self._waiter, reason)

    async def close(self) -> None:
        """The session is closed: end those of its queries. Idempotent."""
        for session in list(self._sessions.values()):
            await session.close()
        if self._on_close is not None:
            self._on_close()

    async def _opened(self, database: SessionDatabase, point: str) -> SessionDatabase:
        """The database as it was. The wait runs in a task of its own, so that an interrupt ends it at any place."""
        answer: asyncio.Future[SessionDatabase] = asyncio.get_running_loop().create_future()
        self._waiter = answer
        scope = TaskScope("past", on_failure=lambda error: None)

        async def read() -> None:
            try:
                found = await database.past(point)
            except Exception as error:  # noqa: BLE001  it is raised below
                fail(answer, error)
                return
            if answer.done():
                found.leave()
            resolve(answer, found)

        scope.spawn(read(), name="open")
        began_s = self._waits.now()
        try:
            return await answer
        except asyncio.CancelledError:
            if has_result(answer):
                answer.result().leave()
            raise
        finally:
            self._waiter = None
            self._waits.read_s += self._waits.now() - began_s
            await scope.aclose()
