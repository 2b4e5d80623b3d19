"""Runs portals: a statement is started once, and its rows are sent in portions as the client requests them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Cursor, Row, SchemaMoved, StatementKind, TransactionStatus
from triplicate.sql.core.transaction_block import failed_transaction
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import EngineStatement
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.copy_commands import CopyCommands
from triplicate.sql.pg.protocol.explain_command import ExplainCommand
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.live_table_rows import LiveTableRows
from triplicate.sql.pg.protocol.past_queries import PastQueries
from triplicate.sql.pg.protocol.plans import StatementPlan
from triplicate.sql.pg.protocol.prepared_statements import (
    Portal,
    check_rows,
    completion,
    engine_parameters,
    note_examined,
    update_plan,
)
from triplicate.sql.pg.protocol.role_changes import RoleChangeCommand
from triplicate.sql.pg.protocol.session_commands import SessionCommands
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.protocol.statement_timeout import statement_timeout
from triplicate.sql.pg.protocol.statement_watch import StatementWatch
from triplicate.sql.pg.protocol.truncate_command import TruncateCommand
from triplicate.sql.pg.syntax.as_of_clause import AsOfQuery
from triplicate.sql.pg.syntax.copy_statement import CopyStatement
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement
from triplicate.sql.pg.syntax.notify_statements import NotifyCall, NotifyStatement
from triplicate.sql.pg.syntax.role_statement import RoleStatement
from triplicate.sql.pg.syntax.truncate_statement import TruncateStatement

FETCH_ROWS = 256
"""Rows in one fetch from a cursor."""
ATTEMPTS = 3
"""Attempts to plan a change if the schema has changed each time it gets the writer."""
CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)
_ENDS = (StatementKind.COMMIT, StatementKind.ROLLBACK)
_READ = StatementKind.READ
_WATCHED = (CopyStatement, ExplainStatement, TruncateStatement, RoleStatement, NotifyStatement, NotifyCall)
"""Commands that are counted like the engine's statements."""


class PortalRunner:
    """Starts the portals of one connection and sends their rows."""

    def __init__(
        self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands, commands: SessionCommands
    ) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings
        self._commands = commands
        self._copy = CopyCommands(state, transaction, settings, self)
        self._truncate = TruncateCommand(state, transaction, settings, self)
        self._role_changes = RoleChangeCommand(state, transaction, settings)
        self._explain = ExplainCommand(state, transaction, settings, self)
        self._live = LiveTableRows(state, settings)
        self._past = PastQueries(state, settings)
        self._watch = StatementWatch(state)

    async def start(self, portal: Portal) -> None:
        """Start the portal's statement once, and fetch its first rows. Raises SqlError: 25P02 in a failed transaction, …."""
        plan = portal.statement.plan
        prepared = plan.prepared
        if prepared is None:
            return
        if portal.cursor is not None:
            if self._state.session.status is TransactionStatus.FAILED:
                raise failed_transaction()
            return
        portal.savepoint = self._state.session.innermost_savepoint()
        self._watch.begin(portal)
        try:
            if prepared.kind is not _READ:
                if self._transaction.intercept(prepared):
                    self._begin(plan)
                    return
                if prepared.kind is StatementKind.COMMIT and self._state.session.status is TransactionStatus.FAILED:
                    portal.tag = "ROLLBACK"  # COMMIT rolls a failed transaction back, and has this tag.
                if prepared.kind in _ENDS and self._state.portals:
                    # They end with the transaction, so the engine need not keep their rows.
                    await self._state.close_portals(but=portal)
            if plan.lock or prepared.kind in CHANGES:
                self._settings.check_access(prepared, plan.lock)
            seconds = self._state.settings.statement_timeout_s
            if seconds <= 0:
                await self._run(portal)
            else:
                async with statement_timeout(self._state, seconds):
                    await self._run(portal)
        except BaseException:
            self._watch.end(portal, 0, failed=True)
            raise
        if prepared.kind is StatementKind.COMMIT and portal.tag is None:
            self._state.listening.commit()
        if prepared.kind is StatementKind.ROLLBACK_TO:
            await self._state.close_portals(but=portal, since=self._state.session.innermost_savepoint())
        if prepared.kind is not _READ:
            self._begin(plan)

    def _begin(self, plan: StatementPlan) -> None:
        """Apply the access mode of BEGIN."""
        if isinstance(plan.command, EngineStatement) and plan.command.read_only is not None:
            self._settings.begin(plan.command.read_only)

    async def _run(self, portal: Portal) -> None:
        """Run the statement, planned for the present schema, and fetch its first rows."""
        statement, state = portal.statement, self._state
        session, plan = state.session, statement.plan
        if isinstance(plan.command, AsOfQuery):
            await self._fetch_first(portal, await self._past.start(portal, plan.command))
            return
        prepared = plan.prepared
        if plan.lock and prepared is not None:
            await session.check_rights(prepared, locks=True)
        if prepared is not None and (prepared.kind is not _READ or plan.lock) and session.status is TransactionStatus.ACTIVE:
            await session.check_rights(prepared)  # A role without the right must not hold the writer.
            if prepared.kind in CHANGES:
                # The schema may change until the session holds the writer, and not afterwards.
                await session.claim_writer(prepared.tag)
            elif plan.lock and not state.is_implicit:
                await session.claim_writer(f"SELECT {plan.lock}")
        for attempt in range(1, ATTEMPTS + 1):
            if statement.schema_version != session.schema_version:
                await update_plan(session, statement, state.plans)
            prepared = statement.plan.prepared
            assert prepared is not None, "only statements of the engine are run"
            try:
                live = await self._live.rows(portal) if statement.plan.live else ()
                parameters = engine_parameters(portal, state.time, state.users(), live)
                check = partial(check_rows, portal) if prepared.kind in CHANGES and prepared.columns else None
                cursor = portal.cursor = await session.start(prepared, parameters, statement.schema_version, check)
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
                if prepared.columns:
                    await self._fetch_first(portal, cursor)
                return
        raise AssertionError("the last attempt returns or raises")

    @staticmethod
    async def _fetch_first(portal: Portal, cursor: Cursor) -> None:
        portal.cursor = cursor
        portal.fetched = await cursor.fetch_batch(FETCH_ROWS)
        portal.has_more = not cursor.is_at_end

    async def execute(self, portal: Portal, max_rows: int, *, is_described: bool) -> None:
        """Send up to `max_rows` rows (0: all) and the completion of the command.

        Args:
            is_described: whether the client knows the columns; in a simple query it does not.

        Raises:
            SqlError: errors of the statement, 57014 if it was cancelled.
        """
        prepared, stream = portal.statement.plan.prepared, self._state.stream
        if prepared is None:
            await self._run_command(portal, is_described=is_described)
            portal.is_done = True
            return
        if not portal.began_s:
            self._watch.begin(portal)
        sent_before, cursor = portal.rows_sent, portal.cursor
        try:
            if cursor is not None and prepared.columns and await self._send_rows(portal, cursor, max_rows):
                stream.write(wire.PORTAL_SUSPENDED)
                self._watch.pause(portal)
                return
        except BaseException:
            self._watch.end(portal, portal.rows_sent, failed=True)
            raise
        portal.is_done = True
        changed = cursor.rows_affected if cursor is not None else 0
        self._watch.end(portal, portal.rows_sent or changed)
        if portal.tag is not None:
            stream.write(wire.command_complete(portal.tag))
            return
        # As in PostgreSQL, the rows that earlier calls sent are not counted again.
        stream.write(completion(prepared.tag, portal.rows_sent - sent_before, changed - sent_before))

    async def _run_command(self, portal: Portal, *, is_described: bool) -> None:
        """Run a command that is no statement of the engine. Settings are not watched: their values may be words."""
        command = portal.statement.plan.command
        is_watched = isinstance(command, _WATCHED)
        if is_watched:
            self._watch.begin(portal)
        try:
            match command:
                case CopyStatement() as copy:
                    await self._copy.run(copy, commits=not is_described)
                case ExplainStatement() as explained:
                    await self._explain.run(portal, explained, is_described=is_described)
                case TruncateStatement() as truncate:
                    await self._truncate.run(truncate, commits=not is_described)
                case RoleStatement() as statement:
                    await self._role_changes.run(statement, commits=not is_described)
                case _:
                    await self._commands.run(portal, is_described=is_described)
        except BaseException:
            if is_watched:
                self._watch.end(portal, 0, failed=True)
            raise
        if is_watched:
            self._watch.end(portal, 0)

    async def next_rows(self, portal: Portal) -> Sequence[Row]:
        """The next rows of a started portal, with which the client gets no DataRow messages; none at the end."""
        rows, portal.fetched = portal.fetched, ()
        return rows if rows or portal.cursor is None else await self._fetch_in_time(portal, portal.cursor, FETCH_ROWS)

    async def _send_rows(self, portal: Portal, cursor: Cursor, max_rows: int) -> bool:
        """Send rows. Returns whether `max_rows` is reached, so that the portal is suspended."""
        stream, prepared = self._state.stream, portal.statement.plan.prepared
        remaining = max_rows if max_rows > 0 else None
        while remaining is None or remaining > 0:
            rows = portal.fetched
            if rows and remaining is None:
                portal.fetched = ()
            elif rows:
                rows, portal.fetched = rows[:remaining], rows[remaining:]
            elif portal.has_more:
                rows = await self._fetch_in_time(portal, cursor, FETCH_ROWS if remaining is None else min(remaining, FETCH_ROWS))
            if not rows:
                break
            stream.write(portal.encode(rows))
            portal.rows_sent += len(rows)
            remaining = None if remaining is None else remaining - len(rows)
            if stream.wants_flush:
                await stream.flush()
            # A change may already be stored, so a cancel comes too late for it.
            if stream.is_lost or (self._state.is_cancelled and (prepared is None or prepared.kind not in CHANGES)):
                raise SqlError("57014", "canceling statement due to user request")
        return remaining == 0

    @staticmethod
    async def _fetch(portal: Portal, cursor: Cursor, count: int) -> list[Row]:
        """The portal's next rows from its cursor."""
        if not portal.has_more:
            return []
        rows = await cursor.fetch_batch(count)
        portal.has_more = not cursor.is_at_end
        return rows

    async def _fetch_in_time(self, portal: Portal, cursor: Cursor, count: int) -> list[Row]:
        seconds = self._state.settings.statement_timeout_s
        if seconds <= 0:
            return await self._fetch(portal, cursor, count)
        async with statement_timeout(self._state, seconds):
            return await self._fetch(portal, cursor, count)
