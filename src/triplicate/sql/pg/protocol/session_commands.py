"""Commands that the session runs without the engine: SET, SHOW, RESET, DEALLOCATE, DISCARD and similar ones."""

from __future__ import annotations

from functools import partial

from triplicate.errors import SqlError
from triplicate.sql.core.interface import TransactionStatus
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
)
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.notify_command import NotifyCommand
from triplicate.sql.pg.protocol.prepared_statements import Portal
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.protocol.statement_timeout import in_time
from triplicate.sql.pg.rewrite.session_calls import SessionCalls
from triplicate.sql.pg.syntax.notify_statements import Listen, NotifyCall, NotifyStatement, Unlisten
from triplicate.sql.pg.syntax.role_statement import SetRole
from triplicate.sql.pg.syntax.statistics_reset import ResetStatistics


class SessionCommands:
    """Runs the session commands of one connection."""

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands) -> None:
        self._state = state
        self._notifying = NotifyCommand(state, transaction)
        self._settings = settings

    async def run(self, portal: Portal, *, is_described: bool) -> None:
        """Run the portal's command and send its answer.

        Args:
            is_described: whether the client knows the columns of the result.

        Raises:
            SqlError: 25P02 in a failed transaction, 25001 for DISCARD ALL in a transaction block, 26000 for DEALLOCATE of an unknown
                name; and as `SettingCommands`.
        """
        command, state = portal.statement.plan.command, self._state
        stream, session = state.stream, state.session
        if session.status is TransactionStatus.FAILED and not isinstance(command, EngineStatement):
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        match command:
            case EngineStatement():
                stream.write(wire.EMPTY_QUERY)
                return
            case SetParameter(name, value, is_local):
                await in_time(state, partial(self._settings.set, name, value, local=is_local))
                tag = "SET"
            case SetAccess():
                self._settings.set_access(command)
                tag = "SET"
            case SetRole():
                self._settings.set_role(command)
                tag = command.tag
            case SetConstraints(immediate):
                await self._set_constraints(immediate=immediate)
                tag = "SET CONSTRAINTS"
            case ResetParameter(name):
                await self._settings.reset(name)
                tag = "RESET"
            case ShowParameter() | SessionCalls():
                if not is_described:
                    stream.write(self._settings.description(command))
                for row in await in_time(state, partial(self._settings.rows, command, portal.parameters)):
                    stream.write(row)
                tag = "SHOW" if isinstance(command, ShowParameter) else "SELECT 1"
            case Listen() | Unlisten():
                state.listening.change(command, in_transaction=session.status is not TransactionStatus.IDLE)
                tag = "LISTEN" if isinstance(command, Listen) else "UNLISTEN"
            case NotifyStatement() | NotifyCall():
                tag = await self._notify(command, portal, is_described=is_described)
            case ResetStatistics():
                tag = self._reset_statistics(command, is_described=is_described)
            case Deallocate(name):
                self._deallocate(name)
                tag = "DEALLOCATE" if name else "DEALLOCATE ALL"
            case Discard(tag):
                if session.status is not TransactionStatus.IDLE:
                    raise SqlError("25001", f"{tag} cannot run inside a transaction block")
                await self._settings.reset(None)
                session.roles.reset()
                state.statements.clear()
                state.listening.change(Unlisten(None), in_transaction=False)
            case NoOperation(tag):
                pass
        stream.write(wire.command_complete(tag))

    async def _set_constraints(self, *, immediate: bool) -> None:
        session = self._state.session
        if session.status is TransactionStatus.IDLE:
            self._state.stream.write(wire.notice_response("25P01", "SET CONSTRAINTS can only be used in transaction blocks"))
        elif immediate:
            await session.check_constraints()

    async def _notify(self, command: NotifyStatement | NotifyCall, portal: Portal, *, is_described: bool) -> str:
        """Send a notification; the tag of the command."""
        await self._notifying.run(command, portal.parameters, is_alone=not is_described)
        return "NOTIFY" if isinstance(command, NotifyStatement) else self._answer_nothing(command, is_described=is_described)

    def _reset_statistics(self, command: ResetStatistics, *, is_described: bool) -> str:
        session = self._state.session
        if not session.roles.is_superuser(session.access):
            raise SqlError("42501", f"permission denied for function {command.column}", hint="Superusers may reset the statistics.")
        self._state.database.activity.statements.reset()
        return self._answer_nothing(command, is_described=is_described)

    def _answer_nothing(self, command: NotifyCall | ResetStatistics, *, is_described: bool) -> str:
        """Send the row of a function without a result; the tag of the command."""
        if not is_described:
            self._state.stream.write(self._settings.description(command))
        self._state.stream.write(wire.data_row([b""]))
        return "SELECT 1"

    def _deallocate(self, name: str | None) -> None:
        if name is None:
            self._state.statements.clear()
        elif self._state.statements.pop(name, None) is None:
            raise SqlError("26000", f'prepared statement "{name}" does not exist')
