"""One client's conversation: simple and extended queries from the end of start-up until the client disconnects.

An error in an extended query skips everything up to the next Sync. Statements between two Syncs, or in one simple query, are one
implicit transaction. A single statement is not wrapped, so that it is one request of the group commit.
Source: PostgreSQL 15 documentation, "Message Flow" and "Multiple Statements in a Simple Query".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from triplicate.errors import ProtocolError, SqlError
from triplicate.sql.core.interface import StatementKind, TransactionStatus
from triplicate.sql.core.lexer import Statement, statement_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import EngineStatement, ShowParameter, classify
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.plans import split_query
from triplicate.sql.pg.protocol.portal_runner import CHANGES, PortalRunner
from triplicate.sql.pg.protocol.prepared_statements import (
    Portal,
    PreparedStatement,
    bind,
    decide_types,
    described_oids,
    fix_columns,
    prepare_statement,
    row_description,
    update_plan,
)
from triplicate.sql.pg.protocol.session_commands import SessionCommands
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.rewrite.session_calls import SessionCalls

_EMPTY = statement_of("")
_CONTROL_WORDS = ("BEGIN", "COMMIT", "ROLLBACK")


class Conversation:
    """Serves one client from the end of start-up until it disconnects."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._transaction = ImplicitTransaction(state)
        self._settings = SettingCommands(state.settings, state.session, state.database, self._notice)
        self._portals = PortalRunner(state, self._transaction, self._settings, SessionCommands(state, self._settings))
        self._reported: dict[str, str] = {}
        self._reported_at: tuple[int, bool] = (-1, False)
        """(number of changes of the settings, whether this node was the leader) at the last report."""
        self._end_reason: SqlError | None = None
        self._extended: dict[type, Callable[[Any], Awaitable[None]]] = {
            wire.Parse: self._parse,
            wire.Bind: self._bind,
            wire.Describe: self._describe,
            wire.Execute: self._execute,
            wire.Close: self._close,
        }

    @property
    def is_busy(self) -> bool:
        """Whether a message is being served."""
        return self._state.is_busy

    def cancel(self) -> None:
        """Interrupt the running statement, which fails with 57014. May be called at any time."""
        self._state.is_cancelled = self._state.is_busy
        self._state.session.cancel()

    def end(self, reason: SqlError) -> None:
        """End the conversation after the message being served: `run` raises the reason."""
        self._end_reason = reason
        self._state.session.cancel()
        self._state.stream.wake()

    def _notice(self, sqlstate: str, message: str) -> None:
        self._state.stream.write(wire.notice_response(sqlstate, message))

    # The loop.

    def greet(self, process_id: int, secret: int) -> None:
        """Send the messages after AuthenticationOk: the settings, the key for cancel requests and ReadyForQuery."""
        self._report()
        self._state.stream.write(wire.backend_key_data(process_id, secret))
        self._state.stream.write(wire.READY_FOR_QUERY[self._state.session.status.value])

    async def run(self) -> None:
        """Serve until the client disconnects.

        Raises:
            SqlError: the server ended the session; the caller sends the error to the client and closes.
            ProtocolError: the client broke the protocol.
        """
        state = self._state
        stream = state.stream
        is_skipping = False  # After an error, all messages up to the next Sync are skipped.
        await stream.flush()
        while True:
            message = stream.next_message()
            if message is None:
                if self._end_reason is not None:
                    raise self._end_reason
                if stream.is_lost:
                    return
                await stream.flush()
                if stream.peek() is None:
                    await stream.wait()
                continue
            if type(message) is wire.Terminate:
                return
            state.is_busy, state.is_cancelled = True, False
            if state.time.began_us is None:
                state.time.begin()
            if type(message) is wire.Sync:
                await self._sync()
                is_skipping = False
            elif not is_skipping:
                serve = self._extended.get(type(message))
                if serve is None:
                    await self._serve_other(message)
                else:
                    try:
                        await serve(message)
                    except SqlError as error:
                        await self._fail(error)
                        is_skipping = True
            state.is_busy = False
            if self._end_reason is not None:
                raise self._end_reason

    async def _serve_other(self, message: wire.ClientMessage) -> None:
        """Serve a message that is not of the extended protocol."""
        match message:
            case wire.Query(sql):
                await self._simple_query(sql)
            case wire.Flush():
                await self._state.stream.flush()
            case wire.Unsupported(letter):
                await self._refuse(letter)

    async def _fail(self, error: SqlError) -> None:
        self._state.stream.write(wire.error_response(error))
        await self._transaction.abandon()

    async def _refuse(self, letter: str) -> None:
        if letter in ("d", "c", "f"):
            return  # Data of a refused COPY may still arrive; PostgreSQL also ignores it.
        if letter != "F":
            raise ProtocolError(f"message {letter!r} is not expected here")
        error = SqlError("0A000", "the function call protocol is not supported; use SELECT")
        self._state.stream.write(wire.error_response(error))
        await self._ready()

    def _report(self) -> None:
        """Send ParameterStatus for each setting that has changed since the last report."""
        settings, is_leader = self._state.settings, self._state.database.is_leader
        if self._reported_at == (settings.changes, is_leader):
            return
        now = settings.reported(is_leader=is_leader)
        for name, value in now.items():
            if self._reported.get(name) != value:
                self._state.stream.write(wire.parameter_status(name, value))
        self._reported, self._reported_at = now, (settings.changes, is_leader)

    async def _ready(self) -> None:
        state = self._state
        status = state.session.status
        if status is TransactionStatus.IDLE:
            state.time.end()
            self._settings.end_transaction()
            if state.portals:
                await state.close_portals()
        self._report()
        state.stream.write(wire.READY_FOR_QUERY[status.value])

    async def _sync(self) -> None:
        if self._state.is_implicit:
            try:
                await self._transaction.commit()
            except SqlError as error:
                await self._fail(error)
        await self._ready()
        await self._state.stream.flush()

    # Simple queries.

    async def _simple_query(self, sql: str) -> None:
        state = self._state
        try:
            statements = await split_query(state.session, sql)
            if not statements:
                state.stream.write(wire.EMPTY_QUERY)
            for index, statement in enumerate(statements):
                if len(statements) > 1:
                    await self._begin_for(statement)
                await self._run_simple(statement, is_alone=len(statements) == 1)
                if index + 1 < len(statements):
                    state.stream.flush_nowait()
            await self._transaction.commit()
        except SqlError as error:
            await self._fail(error)
        unnamed = state.portals.pop("", None)
        if unnamed is not None and unnamed.cursor is not None:
            await unnamed.cursor.close()
        await self._ready()

    async def _begin_for(self, statement: Statement) -> None:
        """Begin the implicit transaction of a query with several statements, unless this statement controls the transaction."""
        command = classify(statement)
        if isinstance(command, EngineStatement) and command.statement.first_word not in _CONTROL_WORDS:
            await self._transaction.begin()

    async def _run_simple(self, text: Statement, *, is_alone: bool) -> None:
        state = self._state
        may_write = state.database.is_leader and not self._settings.is_read_only and state.session.status is TransactionStatus.IDLE
        statement = await prepare_statement(state.session, text, (), state.plans, is_fixed=False, runs_at_once=is_alone and may_write)
        if statement.plan.parameter_oids:
            raise SqlError("42P02", "there is no parameter $1 in a simple query", hint="send parameters with the extended protocol")
        portal = Portal(statement, (), ())
        try:
            await self._portals.start(portal)
            if statement.plan.prepared is not None and statement.plan.prepared.columns:
                state.stream.write(row_description(statement.plan, portal.column_oids or (), portal.formats()))
            await self._portals.execute(portal, 0, is_described=False)
        finally:
            if portal.cursor is not None:
                await portal.cursor.close()

    # Extended queries.

    async def _parse(self, message: wire.Parse) -> None:
        state = self._state
        if message.name and message.name in state.statements:
            raise SqlError("42P05", f'prepared statement "{message.name}" already exists')
        if len(state.statements) >= state.statements_max:
            raise SqlError("53400", f"more than {state.statements_max} prepared statements in one session; close some")
        statements = await split_query(state.session, message.sql)
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        text = statements[0] if statements else _EMPTY
        state.statements[message.name] = await prepare_statement(state.session, text, message.parameter_oids, state.plans, is_fixed=True)
        state.stream.write(wire.PARSE_COMPLETE)

    def _statement(self, name: str) -> PreparedStatement:
        statement = self._state.statements.get(name)
        if statement is None:
            raise SqlError("26000", f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist")
        return statement

    def _portal(self, name: str) -> Portal:
        portal = self._state.portals.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return portal

    async def _bind(self, message: wire.Bind) -> None:
        state = self._state
        if message.portal and message.portal in state.portals:
            raise SqlError("42P03", f'portal "{message.portal}" already exists')
        if len(state.portals) >= state.statements_max:
            raise SqlError("53400", f"more than {state.statements_max} portals in one session; close some")
        statement = self._statement(message.statement)
        if statement.schema_version != state.session.schema_version:
            await update_plan(state.session, statement, state.plans)
        portal = bind(statement, message)
        old = state.portals.pop(message.portal, None)
        if old is not None and old.cursor is not None:
            await old.cursor.close()
        state.portals[message.portal] = portal
        state.stream.write(wire.BIND_COMPLETE)

    async def _describe(self, message: wire.Describe) -> None:
        if message.is_portal:
            await self._describe_portal(self._portal(message.name))
            return
        state = self._state
        statement = self._statement(message.name)
        if statement.schema_version != state.session.schema_version:
            await update_plan(state.session, statement, state.plans)
        plan = statement.plan
        state.stream.write(wire.parameter_description(plan.parameter_oids))
        if isinstance(plan.command, (ShowParameter, SessionCalls)):
            state.stream.write(self._settings.description(plan.command))
            return
        oids = described_oids(plan)
        fix_columns(statement, oids)
        state.stream.write(row_description(plan, oids, [0] * len(oids)))

    async def _describe_portal(self, portal: Portal) -> None:
        plan, stream = portal.statement.plan, self._state.stream
        if plan.prepared is not None and not plan.prepared.columns and len(portal.result_formats) <= 1:
            stream.write(wire.NO_DATA)
            return
        if isinstance(plan.command, (ShowParameter, SessionCalls)):
            stream.write(self._settings.description(plan.command, portal.formats()))
            return
        if plan.prepared is not None and plan.prepared.kind is StatementKind.READ and None in plan.column_oids:
            await self._portals.start(portal)
        decide_types(portal)
        stream.write(row_description(portal.statement.plan, portal.column_oids or (), portal.formats()))

    async def _execute(self, message: wire.Execute) -> None:
        portal = self._portal(message.portal)
        prepared = portal.statement.plan.prepared
        if portal.is_done and (prepared is None or not prepared.columns):
            raise SqlError("55000", f'portal "{message.portal}" cannot be run')
        if portal.cursor is None and prepared is not None and prepared.kind in CHANGES and not self._state.is_implicit:
            await self._begin_unless_alone()
        await self._portals.start(portal)
        await self._portals.execute(portal, message.max_rows, is_described=True)

    async def _begin_unless_alone(self) -> None:
        """Begin an implicit transaction unless Sync is the next message. A single change is one request of the group commit.

        Clients send Execute and Sync together, so the next message has already arrived. With PostgreSQL too, a client that sends neither
        Sync nor Flush never gets its answer.
        """
        stream = self._state.stream
        following = stream.peek()
        while following is None and not stream.is_lost:
            await stream.wait()
            following = stream.peek()
        if following != b"S":
            await self._transaction.begin()

    async def _close(self, message: wire.Close) -> None:
        if message.is_portal:
            portal = self._state.portals.pop(message.name, None)
            if portal is not None and portal.cursor is not None:
                await portal.cursor.close()
        else:
            self._state.statements.pop(message.name, None)
        self._state.stream.write(wire.CLOSE_COMPLETE)
