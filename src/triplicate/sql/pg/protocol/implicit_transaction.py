"""Implicit transactions: the statements between two Syncs, or of one simple query, succeed or fail together.

A single statement is not wrapped, so that it is one request of the group commit. BEGIN turns the implicit transaction into an
explicit one. Source: PostgreSQL 15 documentation, "Multiple Statements in a Simple Query".
"""

from __future__ import annotations

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, StatementKind, TransactionStatus
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState

_BEGINS = (StatementKind.BEGIN, StatementKind.BEGIN_IMMEDIATE)
_ENDS = (StatementKind.COMMIT, StatementKind.ROLLBACK)
_SAVEPOINTS = (StatementKind.SAVEPOINT, StatementKind.RELEASE, StatementKind.ROLLBACK_TO)


class ImplicitTransaction:
    """Begins and ends the implicit transactions of one connection."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state

    async def begin(self) -> None:
        """Begin an implicit transaction, unless a transaction is open."""
        if not self._state.is_implicit and self._state.session.status is TransactionStatus.IDLE:
            await self._control("BEGIN")
            self._state.is_implicit = True

    async def commit(self) -> None:
        """Commit the implicit transaction, if one is open. Its portals are closed."""
        if self._state.is_implicit:
            self._state.is_implicit = False
            await self._state.close_portals()
            await self._control("COMMIT")
            self._state.listening.commit()

    async def abandon(self) -> None:
        """Roll the implicit transaction back after an error. An explicit one stays open and has failed."""
        if self._state.is_implicit:
            self._state.is_implicit = False
            if self._state.session.status is not TransactionStatus.IDLE:
                await self._control("ROLLBACK")
        else:
            self._state.session.fail()

    def intercept(self, prepared: Prepared) -> bool:
        """Apply BEGIN, COMMIT or ROLLBACK if the engine need not run it. Returns False if the engine must run the statement.

        Raises:
            SqlError: 25P01 for a savepoint in an implicit transaction.
        """
        kind, state = prepared.kind, self._state
        if kind in _BEGINS and state.is_implicit:
            state.is_implicit = False  # The block becomes an explicit one, as in PostgreSQL.
            return True
        if kind in _BEGINS and state.session.status is TransactionStatus.ACTIVE:
            state.stream.write(wire.notice_response("25001", "there is already a transaction in progress"))
            return True
        if kind in _SAVEPOINTS and state.is_implicit:
            raise SqlError("25P01", f"{prepared.tag} can only be used in transaction blocks")
        if kind in _ENDS:
            if state.session.status is TransactionStatus.IDLE:
                state.stream.write(wire.notice_response("25P01", "there is no transaction in progress"))
                return True
            state.is_implicit = False
        return False

    async def _control(self, sql: str) -> None:
        cursor = await self._state.session.start(await self._state.session.prepare(sql), ())
        await cursor.close()
