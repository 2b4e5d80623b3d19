"""TRUNCATE: all rows of some tables are deleted in one transaction, the referencing tables first."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, StatementKind, TransactionStatus
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement, prepare_statement
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.truncate_statement import TruncatedTable, TruncateStatement

_TRUNCATE = Prepared("", StatementKind.WRITE, (), (), "TRUNCATE TABLE")
_REFERENCES = "SELECT m.name, f.\"table\" FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'"


class _Reference(NamedTuple):
    """A foreign key, by the names of its tables in lower case."""

    source: str
    referenced: str


class StartsPortals(Protocol):
    async def start(self, portal: Portal) -> None:
        """Run the statement of a portal."""


class TruncateCommand:
    """Runs TRUNCATE on one connection.

    Args:
        portals: runs the DELETE statements.
    """

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands, portals: StartsPortals) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings
        self._portals = portals

    async def run(self, command: TruncateStatement, *, commits: bool) -> None:
        """Delete the rows and send the completion.

        Args:
            commits: whether a transaction that begins here is committed before the completion is sent.

        Raises:
            SqlError: 0A000 if another table references one of the tables; and as DELETE.
        """
        state = self._state
        if state.session.status is TransactionStatus.FAILED:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        state.session.check_prepared(_TRUNCATE)
        self._settings.check_access(_TRUNCATE, "")
        commits = commits and state.session.status is TransactionStatus.IDLE
        await self._transaction.begin()
        for table in command.tables:
            await self._deletion(table)  # A role without the right must not hold the writer.
        await state.session.claim_writer(_TRUNCATE.tag)
        for table in sorted_by_references(command.tables, await self._references()):
            await self._portals.start(Portal(await self._deletion(table), (), ()))
        if commits:
            await self._transaction.commit()
        state.stream.write(wire.command_complete(_TRUNCATE.tag))

    async def _deletion(self, table: TruncatedTable) -> PreparedStatement:
        """The deletion of a table's rows, if the session may truncate the table. By its tag it needs that right. Raises SqlError 42501."""
        state = self._state
        statement = await prepare_statement(state.session, statement_of(f"DELETE FROM {table.target}"), (), state.plans, is_fixed=False)
        prepared = statement.plan.prepared
        assert prepared is not None, "it is a statement of the engine"
        prepared = replace(prepared, tag=_TRUNCATE.tag)
        statement.plan = replace(statement.plan, prepared=prepared)
        await state.session.check_rights(prepared)
        return statement

    async def _references(self) -> list[_Reference]:
        session = self._state.session
        cursor = await session.start(await session.prepare(_REFERENCES), ())
        found: list[_Reference] = []
        try:
            while rows := await cursor.fetch(1000):
                found += [_Reference(str(source).lower(), str(referenced).lower()) for source, referenced in rows]
            return found
        finally:
            await cursor.close()


def sorted_by_references(tables: tuple[TruncatedTable, ...], references: list[_Reference]) -> list[TruncatedTable]:
    """The tables, each before those that it references; tables that reference each other stay in their order.

    Raises:
        SqlError: 0A000 if a table that is not among them references one of them.
    """
    remaining = {table.name.lower(): table for table in tables}
    for source, referenced in references:
        if referenced in remaining and source not in remaining:
            raise SqlError(
                "0A000",
                "cannot truncate a table referenced in a foreign key constraint",
                detail=f'Table "{source}" references "{referenced}".',
                hint=f'Truncate table "{source}" at the same time.',
            )
    found: list[TruncatedTable] = []
    while remaining:
        others = {referenced for source, referenced in references if source in remaining and source != referenced}
        name = next((name for name in remaining if name not in others), next(iter(remaining)))
        found.append(remaining.pop(name))
    return found
