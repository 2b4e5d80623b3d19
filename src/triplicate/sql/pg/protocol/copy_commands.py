"""COPY FROM STDIN and COPY TO STDOUT: what is copied, and the choice of the direction.

Source: PostgreSQL 15 documentation, "COPY Operations" and "COPY".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triplicate.errors import SqlError
from triplicate.sql.core.interface import TransactionStatus
from triplicate.sql.core.lexer import quote
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.copy_in import CopyIn
from triplicate.sql.pg.protocol.copy_out import CopyOut, PortalRows
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.copy_statement import CopyAction, CopyOptions, CopyStatement


class CopyCommands:
    """Runs the COPY commands of one connection.

    Args:
        portals: starts the query of COPY TO.
    """

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands, portals: PortalRows) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings
        self._portals = portals

    async def run(self, command: CopyStatement, *, commits: bool) -> None:
        """Run a COPY and send its answer.

        Args:
            commits: whether a COPY FROM outside of a transaction is committed before its completion is sent; otherwise Sync commits it.

        Raises:
            SqlError: 42P01, 42703, 42701, 42P10 for the table and its columns; 22P04 for malformed data; 57014 if the client gives up or
                cancels; and the errors of the rows.
        """
        if self._state.session.status is TransactionStatus.FAILED:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        try:
            await self._run(command, commits=commits)
        except SqlError as error:
            error.position = None  # It counts in a statement that the client has not sent.
            raise

    async def _run(self, command: CopyStatement, *, commits: bool) -> None:
        state = self._state
        if command.is_from:
            copy_in = CopyIn(state, self._transaction)
            copy_in.check_access(self._settings)
            columns = await self._columns(command)
            await copy_in.run(replace(command, options=_spelled(command.options, columns)), columns, commits=commits)
            return
        copy_out = CopyOut(state, self._portals)
        if command.query:
            await copy_out.run(command.query, command.options)
        else:
            columns = await self._columns(command)
            await copy_out.run(f"SELECT {', '.join(map(quote, columns))} FROM {command.target}", _spelled(command.options, columns))

    async def _columns(self, command: CopyStatement) -> list[str]:
        """The columns of the table that are copied: those that are named, or all without the generated ones; of the key to delete rows."""
        known = await self._state.session.table_columns(command.table)
        if known is None:
            raise SqlError("42P01", f'relation "{command.table}" does not exist')
        key, generated = await self._state.session.special_columns(command.table)
        if command.columns is None and command.options.action is CopyAction.DELETE:
            return key
        if command.columns is None:
            return [name for name, _ in known if name not in generated]
        spelled = {name.lower(): name for name, _ in known}
        found: list[str] = []
        for column in command.columns:
            name = spelled.get(column.lower())
            if name is None:
                raise SqlError("42703", f'column "{column}" of relation "{command.table}" does not exist')
            if name in generated:
                raise SqlError("42P10", f'column "{name}" is a generated column', detail="Generated columns cannot be used in COPY.")
            if name in found:
                raise SqlError("42701", f'column "{name}" specified more than once')
            found.append(name)
        return found


def _spelled(options: CopyOptions, columns: Sequence[str]) -> CopyOptions:
    """The options with the names of columns as the table has them.

    Raises:
        SqlError: 42P10 for a column that is not copied.
    """
    spelled = {name.lower(): name for name in columns}

    def checked(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name.lower() not in spelled:
                raise SqlError("42P10", f'{option} column "{name}" not referenced by COPY')
        return tuple(spelled[name.lower()] for name in names)

    return replace(
        options,
        force_quote=None if options.force_quote is None else checked("FORCE_QUOTE", options.force_quote),
        force_not_null=checked("FORCE_NOT_NULL", options.force_not_null),
        force_null=checked("FORCE_NULL", options.force_null),
    )
