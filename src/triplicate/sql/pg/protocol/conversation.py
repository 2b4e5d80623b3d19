"""One client's conversation: start-up, then simple and extended queries until it leaves.

The rules that are easily missed: an error in an extended query skips everything up to the next Sync; statements between two Syncs,
or in one simple query, are one implicit transaction; a single statement is not wrapped, so that it is one request of the group commit.
Source: PostgreSQL 15 documentation, "Message Flow" and "Multiple Statements in a Simple Query".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from triplicate.errors import ProtocolError, SqlError
from triplicate.runtime import Clock
from triplicate.sql.core.lexer import split_statements
from triplicate.sql.interface import Cursor, Database, Prepared, SchemaMoved, Session, StatementKind, TransactionStatus
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import (
    Deallocate,
    Discard,
    EngineStatement,
    NoOperation,
    ResetParameter,
    SetAccess,
    SetConstraints,
    SetParameter,
    ShowParameter,
    classify,
)
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.prepared_statements import (
    Portal,
    PreparedStatement,
    aside_if_long,
    bind,
    command_tag,
    decide_types,
    described_oids,
    encode_rows,
    engine_parameters,
    prepare_again,
    prepare_statement,
    row_description,
)
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.protocol.settings import SessionSettings, duration_s
from triplicate.sql.pg.protocol.transaction_time import TransactionTime
from triplicate.sql.pg.rewrite.session_calls import SessionCalls

FETCH_ROWS = 256
"""Rows taken from a cursor at once."""
STATEMENTS_MAX = 10_000
"""Prepared statements, and portals, that one session may hold."""
ATTEMPTS = 3
"""How often a change is prepared that finds another schema each time its turn comes."""

_CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)
_ENDS = (StatementKind.COMMIT, StatementKind.ROLLBACK)
_SAVEPOINTS = (StatementKind.SAVEPOINT, StatementKind.RELEASE, StatementKind.ROLLBACK_TO)


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """Bounds of one conversation."""

    statements: int = STATEMENTS_MAX


class Conversation:
    """Serves one client from after start-up until it leaves.

    Args:
        stream: the connection, past its start-up packet.
        database: what it connected to. session: opened for it.
        settings: from the start-up packet.
        clock: for statement_timeout.
    """

    def __init__(
        self,
        stream: MessageStream,
        database: Database,
        session: Session,
        settings: SessionSettings,
        clock: Clock,
        limits: ConversationLimits | None = None,
    ) -> None:
        self._stream = stream
        self._database = database
        self._session = session
        self._settings = settings
        self._clock = clock
        self._time = TransactionTime(clock)
        self._limits = limits or ConversationLimits()
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._reported: dict[str, str] = {}
        self._is_implicit = False
        """The open transaction was begun by us and ends with this query or at Sync."""
        self._parameters = SettingCommands(
            settings, session, database, lambda sqlstate, message: stream.write(wire.notice_response(sqlstate, message))
        )
        self._is_busy = False
        self._is_cancelled = False
        """The message being served was cancelled: also when it is not the engine that works, but the client that is slow to read."""

    def cancel(self) -> None:
        """Interrupt what runs; it fails with 57014. May be called at any time."""
        self._is_cancelled = self._is_busy
        self._session.cancel()

    # The loop.

    def greet(self, process_id: int, secret: int) -> None:
        """What follows AuthenticationOk."""
        self._report()
        self._stream.write(wire.backend_key_data(process_id, secret))
        self._stream.write(wire.ready_for_query(self._session.status.value))

    async def run(self, ended: SessionEnd) -> None:
        """Serve until the client leaves.

        Raises:
            SqlError: the session was ended from our side; the caller tells the client and closes.
            ProtocolError: the client broke the protocol.
        """
        skipping = False
        await self._stream.flush()
        while True:
            message = self._stream.take()
            if message is None:
                ended.check()
                if self._stream.is_lost:
                    return
                await self._stream.flush()
                if self._stream.peek() is None:
                    await self._stream.wait()
                continue
            if isinstance(message, wire.Terminate):
                return
            self._is_busy, self._is_cancelled = True, False
            skipping = await self._serve(message, skipping)
            self._is_busy = False
            ended.check()

    async def _serve(self, message: wire.ClientMessage, skipping: bool) -> bool:
        """Serve one message; returns whether what follows is to be skipped up to the next Sync."""
        self._time.begin()
        match message:
            case wire.Sync():
                await self._sync()
                return False
            case _ if skipping:
                return True
            case wire.Query(sql):
                await self._simple_query(sql)
            case wire.Flush():
                await self._stream.flush()
            case wire.Unsupported(letter):
                await self._refuse(letter)
            case _:
                return not await self._extended(message)
        return False

    async def _refuse(self, letter: str) -> None:
        if letter in ("d", "c", "f"):
            return  # Data of a COPY that was refused may still arrive; PostgreSQL ignores it too.
        if letter == "F":
            self._stream.write(wire.error_response(SqlError("0A000", "the function call protocol is not supported; use SELECT")))
            await self._ready()
            return
        raise ProtocolError(f"message {letter!r} is not expected here")

    def _report(self) -> None:
        now = self._settings.reported(is_leader=self._database.is_leader)
        for name, value in now.items():
            if self._reported.get(name) != value:
                self._stream.write(wire.parameter_status(name, value))
        self._reported = now

    async def _ready(self) -> None:
        if self._session.status is TransactionStatus.IDLE:
            self._time.end()
            self._parameters.end_transaction()
            await self._close_portals()
        self._report()
        self._stream.write(wire.ready_for_query(self._session.status.value))

    # Implicit transactions.

    async def _begin_implicit(self) -> None:
        if not self._is_implicit and self._session.status is TransactionStatus.IDLE:
            await self._control("BEGIN")
            self._is_implicit = True

    async def _end_implicit(self, word: str) -> None:
        if self._is_implicit:
            self._is_implicit = False
            await self._close_portals()
            await self._control(word)

    async def _control(self, sql: str) -> None:
        cursor = await self._session.start(await self._session.prepare(sql), ())
        await cursor.close()

    async def _abandon_implicit(self) -> None:
        """After an error, wherever it was found: an implicit transaction is rolled back, an explicit one has failed."""
        if self._is_implicit:
            self._is_implicit = False
            if self._session.status is not TransactionStatus.IDLE:
                await self._control("ROLLBACK")
        else:
            self._session.fail()

    async def _transaction_control(self, prepared: Prepared) -> bool:
        """Handle BEGIN, COMMIT and ROLLBACK inside an implicit transaction. Returns False where the engine shall run the statement."""
        if prepared.kind in (StatementKind.BEGIN, StatementKind.BEGIN_IMMEDIATE) and self._is_implicit:
            self._is_implicit = False  # The block becomes an explicit one, as in PostgreSQL.
            return True
        if prepared.kind in (StatementKind.BEGIN, StatementKind.BEGIN_IMMEDIATE) and self._session.status is TransactionStatus.ACTIVE:
            self._stream.write(wire.notice_response("25001", "there is already a transaction in progress"))
            return True
        if prepared.kind in _SAVEPOINTS and self._is_implicit:
            raise SqlError("25P01", f"{prepared.tag} can only be used in transaction blocks")
        if prepared.kind in (StatementKind.COMMIT, StatementKind.ROLLBACK) and self._session.status is TransactionStatus.IDLE:
            self._stream.write(wire.notice_response("25P01", "there is no transaction in progress"))
            return True
        if prepared.kind in _ENDS:
            self._is_implicit = False
        return False

    # Simple queries.

    async def _simple_query(self, sql: str) -> None:
        try:
            statements = await aside_if_long(self._session, sql, split_statements, sql)
            if not statements:
                self._stream.write(wire.EMPTY_QUERY)
            for index, text in enumerate(statements):
                if len(statements) > 1:
                    await self._begin_for(text)
                await self._run_simple(text)
                if index + 1 < len(statements):
                    self._stream.flush_nowait()
            await self._end_implicit("COMMIT")
        except SqlError as error:
            self._stream.write(wire.error_response(error))
            await self._abandon_implicit()
        unnamed = self._portals.pop("", None)
        if unnamed is not None:
            await self._close_portal(unnamed)
        await self._ready()

    async def _begin_for(self, text: str) -> None:
        """Open the implicit transaction of a query with several statements, unless this one controls the transaction itself."""
        command = classify(text)
        if isinstance(command, EngineStatement) and command.text.split(" ", 1)[0] not in ("BEGIN", "COMMIT", "ROLLBACK"):
            await self._begin_implicit()

    async def _run_simple(self, text: str) -> None:
        statement = await prepare_statement(self._session, text, ())
        if statement.parameter_oids:
            raise SqlError("42P02", "there is no parameter $1 in a simple query", hint="send parameters with the extended protocol")
        portal = Portal(statement, (), ())
        try:
            await self._start(portal)
            if statement.prepared is not None and statement.prepared.columns:
                self._stream.write(row_description(statement, portal.column_oids or (), portal.formats()))
            await self._execute(portal, 0, is_described=False)
        finally:
            await self._close_portal(portal)

    # Extended queries.

    async def _extended(self, message: wire.ClientMessage) -> bool:
        """Serve one message of an extended query; False when it failed and everything up to Sync is to be skipped."""
        try:
            match message:
                case wire.Parse():
                    await self._parse(message)
                case wire.Bind():
                    await self._bind(message)
                case wire.Describe():
                    await self._describe(message)
                case wire.Execute():
                    await self._execute_portal(message)
                case wire.Close():
                    await self._close(message)
        except SqlError as error:
            self._stream.write(wire.error_response(error))
            await self._abandon_implicit()
            return False
        return True

    async def _parse(self, message: wire.Parse) -> None:
        if message.name and message.name in self._statements:
            raise SqlError("42P05", f'prepared statement "{message.name}" already exists')
        if len(self._statements) >= self._limits.statements:
            raise SqlError("53400", f"more than {self._limits.statements} prepared statements in one session; close some")
        texts = await aside_if_long(self._session, message.sql, split_statements, message.sql)
        if len(texts) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        statement = await prepare_statement(self._session, texts[0] if texts else "", message.parameter_oids)
        statement.is_fixed = True
        self._statements[message.name] = statement
        self._stream.write(wire.PARSE_COMPLETE)

    def _statement(self, name: str) -> PreparedStatement:
        statement = self._statements.get(name)
        if statement is None:
            raise SqlError("26000", f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist")
        return statement

    def _portal(self, name: str) -> Portal:
        portal = self._portals.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return portal

    async def _bind(self, message: wire.Bind) -> None:
        if message.portal and message.portal in self._portals:
            raise SqlError("42P03", f'portal "{message.portal}" already exists')
        if len(self._portals) >= self._limits.statements:
            raise SqlError("53400", f"more than {self._limits.statements} portals in one session; close some")
        statement = self._statement(message.statement)
        await prepare_again(self._session, statement)
        portal = bind(statement, message)
        old = self._portals.pop(message.portal, None)
        if old is not None:
            await self._close_portal(old)
        self._portals[message.portal] = portal
        self._stream.write(wire.BIND_COMPLETE)

    async def _describe(self, message: wire.Describe) -> None:
        if message.is_portal:
            portal = self._portal(message.name)
            if isinstance(portal.statement.command, (ShowParameter, SessionCalls)):
                self._stream.write(self._parameters.description(portal.statement.command, portal.formats()))
                return
            prepared = portal.statement.prepared
            if prepared is not None and prepared.kind is StatementKind.READ and None in portal.statement.column_oids:
                await self._start(portal)
            decide_types(portal)
            self._stream.write(row_description(portal.statement, portal.column_oids or (), portal.formats()))
            return
        statement = self._statement(message.name)
        await prepare_again(self._session, statement)
        self._stream.write(wire.parameter_description(statement.parameter_oids))
        if isinstance(statement.command, (ShowParameter, SessionCalls)):
            self._stream.write(self._parameters.description(statement.command))
            return
        oids = described_oids(statement)
        statement.column_oids = oids
        self._stream.write(row_description(statement, oids, [0] * len(oids)))

    async def _execute_portal(self, message: wire.Execute) -> None:
        portal = self._portal(message.portal)
        prepared = portal.statement.prepared
        if portal.is_done and (prepared is None or not prepared.columns):
            raise SqlError("55000", f'portal "{message.portal}" cannot be run')
        if portal.cursor is None and prepared is not None and prepared.kind in _CHANGES and not self._is_implicit:
            await self._begin_unless_alone()
        await self._start(portal)
        await self._execute(portal, message.max_rows, is_described=True)

    async def _begin_unless_alone(self) -> None:
        """A change followed at once by Sync is a request of its own; one followed by more belongs to an implicit transaction.

        Clients send Execute and Sync together, so the wait is over when it begins; one that sends neither Sync nor Flush
        would wait for its answer for ever with PostgreSQL as well.
        """
        while self._stream.peek() is None and not self._stream.is_lost:
            await self._stream.wait()
        if self._stream.peek() != b"S":
            await self._begin_implicit()

    async def _close(self, message: wire.Close) -> None:
        if message.is_portal:
            portal = self._portals.pop(message.name, None)
            if portal is not None:
                await self._close_portal(portal)
        else:
            self._statements.pop(message.name, None)
        self._stream.write(wire.CLOSE_COMPLETE)

    async def _sync(self) -> None:
        try:
            await self._end_implicit("COMMIT")
        except SqlError as error:
            self._stream.write(wire.error_response(error))
            await self._abandon_implicit()
        await self._ready()
        await self._stream.flush()

    async def _close_portals(self, *, but: Portal | None = None) -> None:
        for name, portal in list(self._portals.items()):
            if portal is not but:
                del self._portals[name]
                await self._close_portal(portal)

    async def _close_portal(self, portal: Portal) -> None:
        if portal.cursor is not None:
            await portal.cursor.close()

    # Running.

    async def _start(self, portal: Portal) -> None:
        """Start the portal's statement, once, and learn the types of its columns from its first rows."""
        prepared = portal.statement.prepared
        if prepared is None or portal.cursor is not None:
            return
        if not await self._transaction_control(prepared):
            if prepared.kind is StatementKind.COMMIT and self._session.status is TransactionStatus.FAILED:
                portal.tag = "ROLLBACK"  # What COMMIT does to a failed transaction, and clients are told so.
            self._parameters.check_access(portal.statement)
            if prepared.kind in _ENDS:
                await self._close_portals(but=portal)  # They end with the transaction; the engine need not keep their rows.
            async with self._in_time():
                portal.cursor = await self._run(portal)
                if prepared.columns:
                    portal.kept = await portal.cursor.fetch(FETCH_ROWS)
                    decide_types(portal)
        command = portal.statement.command
        if isinstance(command, EngineStatement):
            self._parameters.begin(command.read_only)

    async def _run(self, portal: Portal) -> Cursor:
        """Run the statement, prepared for the schema that it meets."""
        statement = portal.statement
        if self._session.status is TransactionStatus.ACTIVE and statement.prepared is not None:
            if statement.prepared.kind in _CHANGES:
                # The schema may change while the writer is awaited, and not once it is held.
                await self._session.claim_writer(statement.prepared.tag)
            elif statement.lock and not self._is_implicit:
                await self._session.claim_writer(f"SELECT {statement.lock}")
        for attempt in range(1, ATTEMPTS + 1):
            await prepare_again(self._session, statement)
            prepared = statement.prepared
            assert prepared is not None, "only statements of the engine are run"
            try:
                times = self._time.transaction_us, self._time.statement_us
                parameters = engine_parameters(portal, *times, self._settings.user)
                return await self._session.start(prepared, parameters, statement.schema_version)
            except SchemaMoved:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Around what statement_timeout limits; it fails with 57014 when the time is over."""
        seconds = duration_s(self._settings.get("statement_timeout", is_leader=self._database.is_leader))
        if seconds <= 0:
            yield
            return
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            self._session.cancel()

        timer = self._clock.call_at(self._clock.monotonic() + seconds, end)
        try:
            yield
        except SqlError as error:
            if is_over and error.sqlstate == "57014":
                raise SqlError("57014", "canceling statement due to statement timeout") from error
            raise
        finally:
            timer.cancel()

    async def _execute(self, portal: Portal, max_rows: int, *, is_described: bool) -> None:
        """Send up to `max_rows` rows (0: all) and what completes the command.

        Args:
            is_described: the client knows the columns already; in a simple query it does not.
        """
        prepared = portal.statement.prepared
        if prepared is None:
            await self._session_command(portal, is_described=is_described)
            portal.is_done = True
            return
        sent_before = portal.rows_sent
        if prepared.columns and portal.cursor is not None:
            left = max_rows if max_rows > 0 else None
            formats = portal.formats()
            while left is None or left > 0:
                take = FETCH_ROWS if left is None else min(left, FETCH_ROWS)
                rows, portal.kept = portal.kept[:take], portal.kept[take:]
                if not rows:
                    async with self._in_time():
                        rows = await portal.cursor.fetch(take)
                if not rows:
                    break
                for row in encode_rows(rows, portal.column_oids or (), formats, portal.statement.shown_typmods):
                    self._stream.write(row)
                portal.rows_sent += len(rows)
                left = None if left is None else left - len(rows)
                if self._stream.wants_flush:
                    await self._stream.flush()
                if self._is_cancelled or self._stream.is_lost:
                    raise SqlError("57014", "canceling statement due to user request")
            if left == 0:
                self._stream.write(wire.PORTAL_SUSPENDED)
                return
        portal.is_done = True
        # As in PostgreSQL, what earlier calls sent of the result is not counted again.
        affected = portal.cursor.rows_affected - sent_before if portal.cursor is not None else 0
        self._stream.write(wire.command_complete(portal.tag or command_tag(prepared, portal.rows_sent - sent_before, affected)))

    # Session commands.

    async def _session_command(self, portal: Portal, *, is_described: bool) -> None:
        command = portal.statement.command
        if self._session.status is TransactionStatus.FAILED and not isinstance(command, EngineStatement):
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        match command:
            case EngineStatement():
                self._stream.write(wire.EMPTY_QUERY)
                return
            case SetParameter(name, value, is_local):
                await self._parameters.set(name, value, local=is_local)
                tag = "SET"
            case SetAccess():
                self._parameters.set_access(command)
                tag = "SET"
            case SetConstraints(immediate):
                if self._session.status is TransactionStatus.IDLE:
                    self._stream.write(wire.notice_response("25P01", "SET CONSTRAINTS can only be used in transaction blocks"))
                elif immediate:
                    await self._session.check_constraints()
                tag = "SET CONSTRAINTS"
            case ResetParameter(name):
                await self._parameters.reset(name)
                tag = "RESET"
            case ShowParameter() | SessionCalls():
                if not is_described:
                    self._stream.write(self._parameters.description(command))
                for row in await self._parameters.rows(command, portal.parameters):
                    self._stream.write(row)
                tag = "SHOW" if isinstance(command, ShowParameter) else "SELECT 1"
            case Deallocate(name):
                if name is None:
                    self._statements.clear()
                elif self._statements.pop(name, None) is None:
                    raise SqlError("26000", f'prepared statement "{name}" does not exist')
                tag = "DEALLOCATE" if name else "DEALLOCATE ALL"
            case Discard(tag):
                if self._session.status is not TransactionStatus.IDLE:
                    raise SqlError("25001", f"{tag} cannot run inside a transaction block")
                await self._parameters.reset(None)
                self._statements.clear()
            case NoOperation(tag):
                pass
        self._stream.write(wire.command_complete(tag))


class SessionEnd:
    """Tells a conversation that its session was ended from our side."""

    def __init__(self) -> None:
        self.error: SqlError | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error
