"""Commands for a session's parameters: SET, SHOW, RESET, ``set_config``, and the access mode of its transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.errors import SqlError
from triplicate.sql.catalogue.system_tables import system_row
from triplicate.sql.core.interface import Database, Prepared, Row, Session, StatementKind, TransactionStatus, Value
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import SetAccess, ShowParameter
from triplicate.sql.pg.protocol.settings import AS_OF, READ_ONLY, REQUEST_ID, SessionSettings, duration_s
from triplicate.sql.pg.rewrite.session_calls import SessionCalls, is_true, values_of
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement
from triplicate.sql.pg.syntax.notify_statements import NotifyCall
from triplicate.sql.pg.syntax.role_statement import SetRole
from triplicate.sql.pg.syntax.statistics_reset import ResetStatistics
from triplicate.sql.pg.values import types

_CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)
_ACCESS = "transaction_read_only"
AnsweredCommand = ShowParameter | SessionCalls | NotifyCall | ResetStatistics | ExplainStatement
ANSWERED_COMMANDS = (ShowParameter, SessionCalls, NotifyCall, ResetStatistics, ExplainStatement)
"""Commands of the session that have a result."""
_ROLES = ("role", "session_authorization")


class SettingCommands:
    """The parameters of one session.

    Args:
        notice: sends a warning, given its SQLSTATE and message.
    """

    def __init__(self, settings: SessionSettings, session: Session, database: Database, notice: Callable[[str, str], None]) -> None:
        self._settings = settings
        self._session = session
        self._database = database
        self._notice = notice
        self._access: bool | None = None
        """Whether the open transaction was declared read-only; None without a declaration."""
        self._applied_changes = 0
        """Number of changes of the settings when the session's level of reads was last set."""
        self._apply_reads()

    # The access mode.

    def begin(self, read_only: bool | None) -> None:
        """Apply the access mode of BEGIN."""
        if read_only is not None:
            self._access = read_only

    def end_transaction(self) -> None:
        """Reset the access mode and the settings of SET LOCAL."""
        self._access = None
        self._settings.end_transaction()
        if self._applied_changes != self._settings.changes:
            self._apply_reads()
        self._session.roles.end_transaction()

    @property
    def is_read_only(self) -> bool:
        return self._settings.read_only if self._access is None else self._access

    def check_access(self, prepared: Prepared, lock: str) -> None:
        """Check whether a statement may run in the transaction's access mode.

        Raises:
            SqlError: 25006 for a change or a lock in a read-only transaction.
        """
        if not self.is_read_only or not (prepared.kind in _CHANGES or lock):
            return
        if self._session.status is not TransactionStatus.FAILED:
            raise SqlError("25006", f"cannot execute {prepared.tag} {lock}".rstrip() + " in a read-only transaction")

    def set_access(self, command: SetAccess) -> None:
        """SET TRANSACTION, and SET SESSION CHARACTERISTICS."""
        if command.read_only is None:
            return  # An isolation level; all of them are serializable here.
        if command.for_session:
            self._settings.set(READ_ONLY, "on" if command.read_only else "off")
        elif self._session.status is TransactionStatus.IDLE:
            self._notice("25P01", "SET TRANSACTION can only be used in transaction blocks")
        else:
            self._access = command.read_only

    # SET and RESET.

    async def reset(self, name: str | None) -> None:
        """Reset one parameter to its initial value, or all of them for None."""
        if name is not None:
            await self.set(name, None)
            return
        self._settings.reset_all()
        self._apply_reads()
        if self._session.status is TransactionStatus.IDLE:
            # Pools reset a connection before they reuse it. The next transaction must not inherit the request id.
            await self._session.set_request_id(None)
            await self._session.travel(None)

    async def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a parameter, or reset it for None.

        Raises:
            SqlError: as `SessionSettings.set`.
        """
        if name.lower() == REQUEST_ID:
            await self._session.set_request_id(value or None)
        elif name.lower() == AS_OF:
            await self._travel(value or None, local=local)
        elif name.lower() in _ROLES:
            self.set_role(SetRole(None if value in (None, "none") else value, name.lower() != "role", local))
        elif name.lower() == _ACCESS and value is not None:
            self.set_access(SetAccess(is_true(value), for_session=False))
        elif value is None:
            self._settings.reset(name)
            self._apply_reads()
        else:
            if name.lower() == "statement_timeout":
                duration_s(value)
            if local and self._session.status is TransactionStatus.IDLE:
                self._notice("25P01", "SET LOCAL can only be used in transaction blocks")
                return
            self._settings.set(name, value, local=local)
            self._apply_reads()

    def _apply_reads(self) -> None:
        """Set the level of the session's later reads."""
        self._applied_changes = self._settings.changes
        self._session.set_reads(self._settings.reads)

    async def _travel(self, point: str | None, *, local: bool) -> None:
        """Read the past from here on, or the present for None. SHOW has the position."""
        if local:
            raise SqlError("0A000", f"{AS_OF} cannot be set for one transaction", hint="SET it before, and RESET it after.")
        position = await self._session.travel(point)
        if position is None:
            self._settings.reset(AS_OF)
        else:
            self._settings.set(AS_OF, f"position {position}")

    def set_role(self, command: SetRole) -> None:
        """SET ROLE, SET SESSION AUTHORIZATION, and RESET of either. Raises SqlError as `SessionRoles`."""
        session = self._session
        if command.is_local and session.status is TransactionStatus.IDLE:
            self._notice("25P01", "SET LOCAL can only be used in transaction blocks")
            return
        change = session.roles.set_session if command.for_session else session.roles.set_role
        change(command.name, session.access, local=command.is_local)

    # SHOW and the calls.

    def description(self, command: AnsweredCommand, formats: Sequence[int] = ()) -> bytes:
        """RowDescription of the command's result.

        Raises:
            SqlError: 42704 for an unknown parameter.
        """
        if isinstance(command, ExplainStatement):
            oid = types.JSON if command.is_json else types.TEXT
            return wire.row_description([wire.ColumnDescription("QUERY PLAN", oid, -1, -1, (formats or [0])[0])])
        if isinstance(command, NotifyCall | ResetStatistics):
            return wire.row_description([wire.ColumnDescription(command.column, types.VOID, 4, -1, (formats or [0])[0])])
        if isinstance(command, SessionCalls):
            names = command.columns
        elif command.name is None:
            names = ["name", "setting", "description"]
        else:
            names = [self._settings.spelled(command.name) if command.name.lower() not in _ROLES else command.name.lower()]
        formats = formats or [0] * len(names)
        return wire.row_description(
            wire.ColumnDescription(name, types.TEXT, -1, -1, shown) for name, shown in zip(names, formats, strict=True)
        )

    async def rows(self, command: ShowParameter | SessionCalls, parameters: Sequence[Value]) -> list[bytes]:
        """Run the command. Returns the DataRow messages of its result."""
        if isinstance(command, SessionCalls):
            return [await self._call(command, parameters)]
        if command.name is not None:
            return [wire.data_row([self._setting(command.name)])]
        every = self._settings.all(is_leader=self._database.is_leader)
        return [wire.data_row([name.encode(), value.encode(), b""]) for name, value in every]

    def setting_rows(self) -> list[Row]:
        """The rows of pg_settings. Those of `role` and `session_authorization` are for `current_setting` in queries of the catalogue."""
        rows: list[Row] = []
        for name in [*(name for name, _ in self._settings.all(is_leader=self._database.is_leader)), *_ROLES]:
            value = (self._setting(name) or b"").decode()
            rows.append(system_row("pg_settings", name=name, setting=value, **self._settings.description(name, value)))
        return rows

    async def _call(self, command: SessionCalls, parameters: Sequence[Value]) -> bytes:
        """Run calls of set_config and current_setting in their order. Returns the DataRow message of their results."""
        row: list[bytes | None] = []
        for call in command.calls:
            name, *others = values_of(call, parameters)
            if name is None:
                row.append(None)
                continue
            if call.sets:
                row.append(await self._set_config(name, others[0], local=is_true(others[1])))
            else:
                row.append(self._setting(name, is_missing_fine=bool(others) and is_true(others[0])))
        return wire.data_row(row)

    async def _set_config(self, name: str, value: str | None, *, local: bool) -> bytes | None:
        if name.lower() == REQUEST_ID:
            await self.set(name, value)
            return (value or "").encode()
        if local and self._session.status is TransactionStatus.IDLE:
            return (value or "").encode()  # The transaction ends with this statement, and the value with it.
        await self.set(name, value, local=local)
        return self._setting(name)

    def _setting(self, name: str, *, is_missing_fine: bool = False) -> bytes | None:
        is_leader = self._database.is_leader
        if name.lower() in _ROLES:
            roles = self._session.roles
            return (roles.role_setting if name.lower() == "role" else roles.session_user or self._settings.user).encode()
        try:
            value = self._settings.get(name, is_leader=is_leader)
        except SqlError:
            if is_missing_fine:
                return None
            raise
        if name.lower() == _ACCESS and is_leader:
            value = "on" if self.is_read_only else "off"
        return value.encode()
