"""Prepares statements without running them: short ones on the event loop, others on a thread of its own.

Almost every new statement is prepared first, changes too. So preparing must not wait behind a long statement on a reader's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.runtime import Worker
from triplicate.sql.core.interface import Prepared, Result, SpecialColumns, StatementKind
from triplicate.sql.core.rights import Rights
from triplicate.sql.core.schema_cache import SchemaCache
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.loop_reader import LoopReader
from triplicate.sql.executor.reader_connection import ReaderConnection, closing_error
from triplicate.sql.storage.sqlite_file import ConnectionSetup

_REMEMBERED = 2000
"""Statements, and tables, that are remembered."""

Columns = list[tuple[str, str]]
"""Name and declared type of each column."""


class StatementExaminer:
    """Examines statements, and remembers the results while the schema stays. All methods raise SqlError 57P01 once closed."""

    def __init__(self, worker: Worker, path: str, setup: ConnectionSetup | None, loop_reader: LoopReader, schema: NewestSchema) -> None:
        self._worker = worker
        self._loop_reader = loop_reader
        self._connection = ReaderConnection(worker, path, setup, schema)
        self._prepared: SchemaCache[Prepared] = SchemaCache(_REMEMBERED)
        self._rights: SchemaCache[Rights] = SchemaCache(_REMEMBERED)
        self._columns: SchemaCache[Columns | None] = SchemaCache(_REMEMBERED)

    async def examine(self, sql: str, schema_version: int) -> Prepared:
        """Check a statement, see `Authorizer.examine`, by the schema of this version."""
        self._check_open()
        self._prepared.move_to(schema_version)
        if sql in self._prepared:
            return self._prepared.get(sql)
        prepared = self._loop_reader.examine(sql)
        if prepared is None:
            prepared = await self._worker.run(self._connection.examine, sql)
        self._prepared.remember(sql, prepared, schema_version)
        return prepared

    async def columns_of(self, table: str, schema_version: int) -> Columns | None:
        """The columns of a table in order, or None when there is no such table."""
        self._check_open()
        self._columns.move_to(schema_version)
        if table in self._columns:
            return self._columns.get(table)
        columns: Columns | None = await self._worker.run(self._connection.columns_of, table)
        self._columns.remember(table, columns, schema_version)
        return columns

    async def special_columns_of(self, table: str) -> SpecialColumns:
        """Those of a table as of now."""
        self._check_open()
        found: SpecialColumns = await self._worker.run(self._connection.special_columns_of, table)
        return found

    async def rights_of(self, sql: str, kind: StatementKind, schema_version: int) -> Rights:
        """The rights that a statement needs by the schema of this version, see `StatementRights.of`."""
        self._check_open()
        known = self._rights.find(sql, schema_version)
        if known is None:
            known = await self._worker.run(self._connection.rights_of, sql, kind)
            self._rights.remember(sql, known, schema_version)
        return known

    async def lock_rights_of(self, sql: str) -> Rights:
        """The rights for locking the rows that a query reads, see `StatementRights.of_lock`."""
        self._check_open()
        rights: Rights = await self._worker.run(self._connection.lock_rights_of, sql)
        return rights

    async def truncation_rights_of(self, sql: str) -> Rights:
        """The rights for a DELETE that TRUNCATE consists of, see `StatementRights.of_truncation`."""
        self._check_open()
        rights: Rights = await self._worker.run(self._connection.truncation_rights_of, sql)
        return rights

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Compute something on the thread. Raises what the function raises."""
        self._check_open()
        return await self._worker.run(function, *arguments)

    def _check_open(self) -> None:
        # The connection is opened by its first use; a use after the end would leave one open.
        if self._connection.closed:
            raise closing_error()

    def refuse(self) -> None:
        """Refuse further work, and interrupt what runs."""
        self._connection.refuse()

    async def close(self) -> None:
        """Close the connection when its work is done."""
        self.refuse()
        await self._connection.shut()
        await self._worker.close()
