"""One client's conversation: simple and extended queries from the end of start-up until the client disconnects.

An error in an extended query skips everything up to the next Sync. Statements between two Syncs, or in one simple query, are one
implicit transaction. A single statement is not wrapped, so that it is one request of the group commit.
Source: PostgreSQL 15 documentation, "Message Flow" and "Multiple Statements in a Simple Query".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from triplicate.errors import SqlError
from triplicate.runtime import EagerWork, TaskScope, fail, resolve
from triplicate.sql.core.interface import StatementKind, TransactionStatus
from triplicate.sql.core.lexer import Statement, statement_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import EngineStatement, classify
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.flushing_work import FlushingWork
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.plans import split_query
from triplicate.sql.pg.protocol.portal_runner import CHANGES, PortalRunner
from triplicate.sql.pg.protocol.prepared_statements import (
    Portal,
    PreparedStatement,
    bind,
    portal_of_shape,
    prepare_statement,
    row_description,
    update_plan,
)
from triplicate.sql.pg.protocol.protocol_state import EXTENDED, TURN_COST, Reception
from triplicate.sql.pg.protocol.rounds import Round
from triplicate.sql.pg.protocol.session_commands import SessionCommands
from triplicate.sql.pg.protocol.setting_commands import ANSWERED_COMMANDS, SettingCommands
from triplicate.sql.pg.protocol.statement_failures import failure_of
from triplicate.sql.pg.protocol.statement_runs import StatementRuns
from triplicate.sql.pg.protocol.statement_timeout import in_time
from triplicate.sql.pg.syntax.as_of_clause import AsOfQuery
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement
from triplicate.sql.pg.syntax.notify_statements import NotifyCall, NotifyStatement
from triplicate.sql.pg.syntax.role_statement import RoleStatement
from triplicate.sql.pg.syntax.truncate_statement import TruncateStatement
from triplicate.sql.storage.sqlstates import FAULTS

_EMPTY = statement_of("")
_CONTROL_WORDS = ("BEGIN", "COMMIT", "ROLLBACK")
_READ = StatementKind.READ
_IDLE = TransactionStatus.IDLE
_READY_WHEN_IDLE = wire.READY_FOR_QUERY[TransactionStatus.IDLE.value]
_LARGE_ANSWERS = frozenset((b"E", b"Q", b"D"))
"""Letters of messages whose answers may exceed the buffer."""


class Conversation:
    """Serves one client from the end of start-up until it disconnects.

    The messages of a received chunk are served at once, in the callback of the event loop that delivers it. Where a message must wait, a
    callback continues once the group commit has the outcome of a single change, and a task continues after any other wait. Only one such
    piece of work runs at a time; later chunks wait in the stream.
    """

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._transaction = ImplicitTransaction(state)
        self._settings = SettingCommands(state.settings, state.session, state.database, self._notice)
        self._portals = PortalRunner(state, self._transaction, self._settings, SessionCommands(state, self._transaction, self._settings))
        self._runs = StatementRuns(state, self._settings, self._portals)
        self._reported: dict[str, str] = {}
        self._reported_changes = -1
        """Number of changes of the settings at the last report."""
        self._reported_leader = False
        """Whether this node was the leader at the last report."""
        self._end_reason: SqlError | None = None
        self._scope = TaskScope("client")
        self._is_working = False
        self._work_runner = EagerWork(self._continue, state.stream.flush_due)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_busy(self) -> bool:
        """Whether a message is being served."""
        return self._state.is_busy

    def cancel(self) -> None:
        """Interrupt the running statement, which fails with 57014. May be called at any time."""
        self._state.cancel()
        self._state.interrupt()

    def end(self, reason: SqlError) -> None:
        """End the conversation after the message being served: `run` raises the reason."""
        self._end_reason = reason
        self._state.interrupt()
        self._advance()

    def _notice(self, sqlstate: str, message: str) -> None:
        self._state.stream.write(wire.notice_response(sqlstate, message))

    # The work.

    def greet(self, process_id: int, secret: int) -> None:
        """Send the messages after AuthenticationOk: the settings, the key for cancel requests and ReadyForQuery."""
        self._report()
        self._state.stream.write(wire.backend_key_data(process_id, secret))
        self._state.stream.write(wire.READY_FOR_QUERY[self._state.session.status.value])

    async def run(self) -> None:
        """Serve until the client disconnects. When it returns or raises, no statement runs any more.

        Raises:
            SqlError: the server ended the session; the caller sends the error to the client and closes.
            ProtocolError: the client broke the protocol.
        """
        state = self._state
        state.stream.on_input = self._advance
        state.listening.on_first, state.listening.on_overflow = self._notified, self.end
        try:
            self._advance()
            await self._ended
        finally:
            state.is_over, state.stream.on_input = True, None
            state.listening.close()
            self._work_runner.move_to_task()
            await self._scope.aclose()

    def _advance(self) -> None:
        """Serve the messages that have arrived. Where work is under way, it serves them when it gets there."""
        if self._is_working:
            self._state.stream.limit_input()
            self._state.stream.wake()
        elif not self._state.is_over:
            self._is_working = True
            self._work_runner.start(self._work())

    def _notified(self) -> None:
        """Notifications wait. Work that is under way sends them when it gets between two transactions."""
        if not self._is_working:
            asyncio.get_running_loop().call_soon(self._advance)

    def _send_notifications(self) -> None:
        """Send the notifications that wait, unless the client is within a transaction."""
        state = self._state
        if state.listening.has_waiting and state.is_between_transactions:
            state.stream.write(state.listening.take())

    def _continue(self, rest: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Continue work that waits in a task."""
        return self._scope.spawn(FlushingWork(rest, self._state.stream), name="work")

    async def _work(self) -> None:
        try:
            await self._serve_messages()
            self._send_notifications()
            self._state.stream.flush_nowait()
        except asyncio.CancelledError:
            self._ended.cancel()
            raise
        except Exception as error:  # noqa: BLE001 -- it is raised from `run`
            self._state.is_over = True
            fail(self._ended, error)
        finally:
            self._is_working = False
        if self._state.is_over:
            resolve(self._ended, None)

    async def _serve_messages(self) -> None:
        """Serve until no complete message is left, or the conversation is over."""
        state = self._state
        stream, time = state.stream, state.time
        state.begin_turn()
        if stream.must_wait:
            await stream.flush()
        while self._end_reason is None:
            found = None if state.is_skipping else stream.find_round()
            if found is not None:
                statement = state.statements.get(found.shape.statement)
                # COPY and other commands of the session may receive the messages after Execute themselves.
                if statement is not None and statement.plan.prepared is not None:
                    stream.skip_round(found)
                    await self._serve_round(found, statement)
                    if stream.is_drained and self._end_reason is None:
                        return
                    if state.turn_cost >= TURN_COST:
                        await self._end_turn()
                    continue
            following = stream.next_message()
            if following is None:
                state.is_over = state.is_over or stream.is_lost
                return
            letter, body = following
            reception = state.receive(letter)
            if reception is Reception.SERVED:
                message = wire.decode_message(letter, body)
                if time.began_us is None:
                    time.begin()
                handler = _HANDLERS.get(letter)
                if handler is not None:
                    try:
                        await handler(self, message)
                    except FAULTS as error:
                        if letter not in EXTENDED:
                            raise
                        await self._fail(error)
                        state.fail_message()
                state.is_busy = False
                if state.is_over:
                    return  # Terminate was among the data of a COPY.
                if letter in _LARGE_ANSWERS and stream.must_wait:
                    await stream.flush()
            elif reception is Reception.LAST:
                return
            if state.turn_cost >= TURN_COST:
                await self._end_turn()
        raise self._end_reason

    async def _end_turn(self) -> None:
        await self._state.end_turn()
        if self._state.stream.must_wait:
            await self._state.stream.flush()

    async def _serve_round(self, found: Round, statement: PreparedStatement) -> None:
        """Serve the messages of a round, each as by itself. Its statement is one of the engine."""
        state, stream = self._state, self._state.stream
        state.receive_round(is_described=found.is_described)
        prepared = statement.plan.prepared
        if state.time.began_us is None and (prepared is None or prepared.kind is not _READ):
            state.time.begin()  # A read by itself begins the time when it needs it.
        shape = found.shape
        try:
            state.check_new_portal("")
            portal = await self._bind_portal("", statement, shape.parameter_formats, found.values, shape.result_formats)
            if found.is_described:
                await self._describe_portal(portal)
            state.is_cancelled = False  # A cancel ends one message.
            # Sync comes next, so a change is a single one, and no run of changes begins.
            await self._portals.start(portal)
            await self._portals.execute(portal, 0, is_described=True)
        except FAULTS as error:
            await self._fail(error)
        state.is_busy = False
        if stream.must_wait:
            await stream.flush()
        if self._end_reason is None:
            state.is_busy, state.is_cancelled = True, False
            if state.is_implicit:
                await self._commit()
            await self._ready()
            state.is_busy = False

    async def _fail(self, error: Exception) -> None:
        self._state.stream.write(wire.error_response(failure_of(error)))
        await self._transaction.abandon()

    async def _flush(self, _: wire.Flush) -> None:
        self._state.stream.mark_due()

    async def _refuse_call(self, _: wire.Unsupported) -> None:
        error = SqlError("0A000", "the function call protocol is not supported; use SELECT")
        self._state.stream.write(wire.error_response(error))
        await self._ready()

    def _report(self) -> None:
        """Send ParameterStatus for each setting that has changed since the last report."""
        settings, is_leader = self._state.settings, self._state.database.is_leader
        if self._reported_changes == settings.changes and self._reported_leader is is_leader:
            return
        now = settings.reported(is_leader=is_leader)
        for name, value in now.items():
            if self._reported.get(name) != value:
                self._state.stream.write(wire.parameter_status(name, value))
        self._reported, self._reported_changes, self._reported_leader = now, settings.changes, is_leader

    async def _ready(self) -> None:
        state = self._state
        status = state.session.status
        if status is _IDLE:
            if state.time.began_us is not None:
                state.time.end()
            self._settings.end_transaction()
            state.listening.roll_back()
            if state.portals:
                await state.close_portals()
            if state.listening.has_waiting:
                state.stream.write(state.listening.take())
        self._report()
        state.stream.write(_READY_WHEN_IDLE if status is _IDLE else wire.READY_FOR_QUERY[status.value])
        state.stream.mark_due()

    async def _sync(self, _: wire.Sync) -> None:
        if self._state.is_implicit:
            await self._commit()
        await self._ready()

    async def _commit(self) -> None:
        try:
            await self._transaction.commit()
        except FAULTS as error:
            await self._fail(error)

    # Simple queries.

    async def _simple_query(self, message: wire.Query) -> None:
        state = self._state
        try:
            portal = await portal_of_shape(state.session, message.sql, state.plans)
            if portal is not None:
                await self._run_portal(portal)
            else:
                await self._run_statements(await split_query(state.session, message.sql))
            await self._transaction.commit()
        except FAULTS as error:
            await self._fail(error)
        unnamed = state.portals.pop("", None)
        if unnamed is not None:
            await unnamed.close()
        await self._ready()

    async def _run_statements(self, statements: Sequence[Statement]) -> None:
        """Run the statements of a simple query."""
        if not statements:
            self._state.stream.write(wire.EMPTY_QUERY)
        for index, statement in enumerate(statements):
            if len(statements) > 1:
                await self._begin_for(statement)
            await self._run_simple(statement, is_alone=len(statements) == 1)
            if index + 1 < len(statements):
                self._state.stream.mark_due()
                self._state.receive_run(1)
                if self._state.turn_cost >= TURN_COST:
                    await asyncio.sleep(0)  # Other connections are served before the next statement.
                    self._state.begin_turn()

    async def _begin_for(self, statement: Statement) -> None:
        """Begin the implicit transaction of a query with several statements, unless this statement controls the transaction."""
        command = classify(statement)
        is_engines = isinstance(command, EngineStatement) and command.statement.first_word not in _CONTROL_WORDS
        if is_engines or isinstance(command, RoleStatement | TruncateStatement | NotifyStatement | NotifyCall | ExplainStatement):
            await self._transaction.begin()

    async def _run_simple(self, text: Statement, *, is_alone: bool) -> None:
        state = self._state
        may_write = state.database.is_leader and not self._settings.is_read_only and state.session.status is TransactionStatus.IDLE
        at_once = is_alone and may_write
        statement = await in_time(
            state, lambda: prepare_statement(state.session, text, (), state.plans, is_fixed=False, runs_at_once=at_once)
        )
        if statement.plan.parameter_oids:
            raise SqlError("42P02", "there is no parameter $1 in a simple query", hint="send parameters with the extended protocol")
        await self._run_portal(Portal(statement, (), ()))

    async def _run_portal(self, portal: Portal) -> None:
        """Run the portal of a simple query to its end."""
        try:
            await self._portals.start(portal)
            plan = portal.statement.plan
            if plan.prepared is not None and plan.prepared.columns:
                self._state.stream.write(row_description(plan, portal.formats()))
            await self._portals.execute(portal, 0, is_described=False)
        finally:
            await portal.close()

    # Extended queries.

    async def _parse(self, message: wire.Parse) -> None:
        state = self._state
        state.check_new_statement(message.name)
        statements = await split_query(state.session, message.sql)
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        text = statements[0] if statements else _EMPTY
        state.statements[message.name] = await in_time(
            state, lambda: prepare_statement(state.session, text, message.parameter_oids, state.plans, is_fixed=True)
        )
        state.stream.write(wire.PARSE_COMPLETE)

    async def _bind(self, message: wire.Bind) -> None:
        self._state.check_new_portal(message.portal)
        statement = self._state.statement(message.statement)
        await self._bind_portal(message.portal, statement, message.parameter_formats, message.parameters, message.result_formats)

    async def _bind_portal(
        self,
        name: str,
        statement: PreparedStatement,
        formats: tuple[int, ...],
        values: tuple[bytes | None, ...],
        result_formats: tuple[int, ...],
    ) -> Portal:
        state = self._state
        if statement.schema_version != state.session.schema_version:
            await update_plan(state.session, statement, state.plans)
        portal = bind(statement, formats, values, result_formats)
        portal.savepoint = state.session.innermost_savepoint()
        old = state.portals.pop(name, None)
        if old is not None:
            await old.close()
        state.portals[name] = portal
        state.stream.write(wire.BIND_COMPLETE)
        return portal

    async def _describe(self, message: wire.Describe) -> None:
        if message.is_portal:
            await self._describe_portal(self._state.portal(message.name))
            return
        state = self._state
        statement = state.statement(message.name)
        if statement.schema_version != state.session.schema_version:
            await update_plan(state.session, statement, state.plans)
        plan = statement.plan
        state.stream.write(wire.parameter_description(plan.parameter_oids))
        if isinstance(plan.command, ANSWERED_COMMANDS):
            state.stream.write(self._settings.description(plan.command))
            return
        statement.is_fixed = True
        state.stream.write(row_description(plan, (0,) * len(plan.column_oids)))

    async def _describe_portal(self, portal: Portal) -> None:
        plan, stream = portal.statement.plan, self._state.stream
        if plan.prepared is not None and not plan.prepared.columns and len(portal.result_formats) <= 1:
            stream.write(wire.NO_DATA)
            return
        if isinstance(plan.command, ANSWERED_COMMANDS):
            stream.write(self._settings.description(plan.command, portal.formats()))
            return
        if isinstance(plan.command, AsOfQuery):
            await self._portals.start(portal)
        stream.write(row_description(portal.statement.plan, portal.formats()))

    async def _execute(self, message: wire.Execute) -> None:
        portal = self._state.portal(message.portal)
        prepared = portal.statement.plan.prepared
        if portal.is_done and (prepared is None or not prepared.columns):
            raise SqlError("55000", f'portal "{message.portal}" cannot be run')
        if portal.cursor is None and prepared is not None and prepared.kind in CHANGES and not self._state.is_implicit:
            await self._begin_unless_alone()
        if self._runs.begins_with(portal):
            for letter, body in await self._runs.execute(portal):
                await _HANDLERS[letter](self, wire.decode_message(letter, body))
            return
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
            if portal is not None:
                await portal.close()
        else:
            self._state.statements.pop(message.name, None)
        self._state.stream.write(wire.CLOSE_COMPLETE)


_HANDLERS: Mapping[bytes, Callable[[Conversation, Any], Awaitable[object]]] = {
    b"P": Conversation._parse,
    b"B": Conversation._bind,
    b"D": Conversation._describe,
    b"E": Conversation._execute,
    b"C": Conversation._close,
    b"S": Conversation._sync,
    b"Q": Conversation._simple_query,
    b"H": Conversation._flush,
    b"F": Conversation._refuse_call,
}
"""Maps the letter of a message to its handler. The data of a failed COPY, which may still arrive, has none and is ignored."""
