"""Runs portals: a statement is started once, and its rows are sent in portions as the client requests them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Cursor, Row, SchemaMoved, StatementKind, TransactionStatus
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import EngineStatement
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.prepared_statements import (
    Portal,
    check_rows,
    command_tag,
    decide_types,
    encode_rows,
    engine_parameters,
    note_examined,
    update_plan,
)
from triplicate.sql.pg.protocol.session_commands import SessionCommands
from triplicate.sql.pg.protocol.setting_commands import SettingCommands

FETCH_ROWS = 256
"""Rows in one fetch from a cursor."""
ATTEMPTS = 3
"""Attempts to plan a change if the schema has changed each time it gets the writer."""
CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)
_ENDS = (StatementKind.COMMIT, StatementKind.ROLLBACK)


class PortalRunner:
    """Starts the portals of one connection and sends their rows."""

    def __init__(
        self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands, commands: SessionCommands
    ) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings
        self._commands = commands

    async def start(self, portal: Portal) -> None:
        """Start the portal's statement once, and fix the types of its columns by its first rows. Raises SqlError."""
        plan = portal.statement.plan
        prepared, command = plan.prepared, plan.command
        if prepared is None or portal.cursor is not None:
            return
        if not self._transaction.intercept(prepared):
            session = self._state.session
            if prepared.kind is StatementKind.COMMIT and session.status is TransactionStatus.FAILED:
                portal.tag = "ROLLBACK"  # COMMIT rolls a failed transaction back, and has this tag.
            if plan.lock or prepared.kind in CHANGES:
                self._settings.check_access(prepared, plan.lock)
            if prepared.kind in _ENDS and self._state.portals:
                await self._state.close_portals(but=portal)  # They end with the transaction, so the engine need not keep their rows.
            seconds = self._state.settings.statement_timeout_s
            if seconds <= 0:
                portal.cursor = await self._run(portal)
                if prepared.columns:
                    await self._fetch_first(portal, portal.cursor)
            else:
                async with self._timeout(seconds):
                    portal.cursor = await self._run(portal)
                    if prepared.columns:
                        await self._fetch_first(portal, portal.cursor)
        if isinstance(command, EngineStatement) and command.read_only is not None:
            self._settings.begin(command.read_only)

    async def _fetch_first(self, portal: Portal, cursor: Cursor) -> None:
        portal.fetched = await cursor.fetch(FETCH_ROWS)
        decide_types(portal)

    async def _run(self, portal: Portal) -> Cursor:
        """Run the statement, planned for the present schema."""
        statement, session, state = portal.statement, self._state.session, self._state
        plan = statement.plan
        if plan.prepared is not None and session.status is TransactionStatus.ACTIVE:
            if plan.prepared.kind in CHANGES:
                # The schema may change until the session holds the writer, and not afterwards.
                await session.claim_writer(plan.prepared.tag)
            elif plan.lock and not state.is_implicit:
                await session.claim_writer(f"SELECT {plan.lock}")
        for attempt in range(1, ATTEMPTS + 1):
            if statement.schema_version != session.schema_version:
                await update_plan(session, statement, state.plans)
            prepared = statement.plan.prepared
            assert prepared is not None, "only statements of the engine are run"
            try:
                parameters = engine_parameters(portal, state.time, state.settings.user)
                check = partial(check_rows, portal) if prepared.columns and prepared.kind in CHANGES else None
                cursor = await session.start(prepared, parameters, statement.schema_version, check)
            except SchemaMoved:
                if attempt == ATTEMPTS:
                    raise
            except SqlError as error:
                if statement.plan.unexamined is not None and error.position is not None:
                    error.position = statement.plan.unexamined.origin(error.position)
                raise
            else:
                if statement.plan.unexamined is not None:
                    note_examined(statement, state.plans)
                return cursor
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _timeout(self, seconds: float) -> AsyncIterator[None]:
        """Interrupt the engine after `seconds`. The statement then fails with 57014."""
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            self._state.session.cancel()

        clock = self._state.clock
        timer = clock.call_at(clock.monotonic() + seconds, end)
        try:
            yield
        except SqlError as error:
            if is_over and error.sqlstate == "57014":
                raise SqlError("57014", "canceling statement due to statement timeout") from error
            raise
        finally:
            timer.cancel()

    async def execute(self, portal: Portal, max_rows: int, *, is_described: bool) -> None:
        """Send up to `max_rows` rows (0: all) and the completion of the command.

        Args:
            is_described: whether the client knows the columns; in a simple query it does not.

        Raises:
            SqlError: errors of the statement, 57014 if it was cancelled.
        """
        prepared, stream = portal.statement.plan.prepared, self._state.stream
        if prepared is None:
            await self._commands.run(portal, is_described=is_described)
            portal.is_done = True
            return
        sent_before = portal.rows_sent
        if prepared.columns and portal.cursor is not None and await self._send_rows(portal, portal.cursor, max_rows):
            stream.write(wire.PORTAL_SUSPENDED)
            return
        portal.is_done = True
        # As in PostgreSQL, the rows that earlier calls sent are not counted again.
        affected = portal.cursor.rows_affected - sent_before if portal.cursor is not None else 0
        stream.write(wire.command_complete(portal.tag or command_tag(prepared, portal.rows_sent - sent_before, affected)))

    async def _send_rows(self, portal: Portal, cursor: Cursor, max_rows: int) -> bool:
        """Send rows. Returns whether `max_rows` is reached, so that the portal is suspended."""
        stream, prepared = self._state.stream, portal.statement.plan.prepared
        # A change may already be stored, so a cancel comes too late for it.
        is_change = prepared is not None and prepared.kind in CHANGES
        remaining = max_rows if max_rows > 0 else None
        formats = portal.formats()
        while remaining is None or remaining > 0:
            count = FETCH_ROWS if remaining is None else min(remaining, FETCH_ROWS)
            rows, portal.fetched = portal.fetched[:count], portal.fetched[count:]
            if not rows:
                rows = await self._fetch(cursor, count)
            if not rows:
                break
            for row in encode_rows(rows, portal.column_oids or (), formats, portal.statement.plan.shown_typmods):
                stream.write(row)
            portal.rows_sent += len(rows)
            remaining = None if remaining is None else remaining - len(rows)
            if stream.wants_flush:
                await stream.flush()
            if stream.is_lost or (self._state.is_cancelled and not is_change):
                raise SqlError("57014", "canceling statement due to user request")
        return remaining == 0

    async def _fetch(self, cursor: Cursor, count: int) -> list[Row]:
        seconds = self._state.settings.statement_timeout_s
        if seconds <= 0:
            return await cursor.fetch(count)
        async with self._timeout(seconds):
            return await cursor.fetch(count)
