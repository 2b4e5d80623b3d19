"""The catalogue's tables on one connection: virtual tables with rows for the schema that the running statement sees."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import apsw

from triplicate.sql.catalogue.live_tables import LIVE_TABLES, LiveModule
from triplicate.sql.catalogue.relations import TABLES, Catalogue, build
from triplicate.sql.catalogue.schema_facts import read_facts
from triplicate.sql.catalogue.system_tables import SYSTEM_OIDS, columns_of
from triplicate.sql.core.interface import Row
from triplicate.sql.storage.access_tables import access_rows, load_access_rights

_SCANNED_ROWS = 1000.0
"""Estimated rows of a table, for the planner. Each equality constraint divides the estimate by 10."""


class CatalogueReader:
    """The catalogue of the schema that the connection's transaction sees. It is built again when the schema has changed."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._version: tuple[int, int] | None = None
        self._access_key: tuple[int, int] | None = None
        self._access_rows: tuple[tuple[Any, ...], ...] = ()
        """The stored roles and rights, as of the last read."""
        self._catalogue: Catalogue | None = None
        self._by_column: dict[tuple[str, int], tuple[type | None, dict[Any, list[Row]]]] = {}
        """For (table, position of a column): the type of all its values, None if they have several, and the rows by value."""

    @property
    def database(self) -> str:
        """The database's name."""
        # A node keeps each database's file in a folder with the database's name.
        return os.path.basename(os.path.dirname(self._connection.db_filename("main") or ""))

    def read(self) -> Catalogue:
        """The catalogue of the present schema."""
        version = self._schema_version()
        if self._has_other_access() or self._catalogue is None or version != self._version:
            self._catalogue = build(read_facts(self._connection), self.database, load_access_rights(self._connection))
            self._version = version
            self._by_column.clear()
        return self._catalogue

    def _has_other_access(self) -> bool:
        """Whether the stored roles and rights are others than at the last call."""
        connection = self._connection
        key = int(connection.pragma("data_version")), connection.total_changes()
        if key == self._access_key:
            return False
        rows, self._access_rows, self._access_key = self._access_rows, access_rows(connection), key
        return rows != self._access_rows

    def _schema_version(self) -> tuple[int, int]:
        """A key that differs for different schemas: SQLite's schema version, and in a writing transaction also a hash of the schema's
        text, because SQLite reuses a version that was rolled back.
        """
        number = int(self._connection.pragma("schema_version"))
        if self._connection.txn_state("main") != apsw.SQLITE_TXN_WRITE:
            return number, 0
        return number, hash(tuple(self._connection.execute("select name, sql from main.sqlite_schema")))

    def rows(self, catalogue: Catalogue, table: str, constraints: Sequence[tuple[int, Any]]) -> Sequence[Row]:
        """Rows of a table that may satisfy the constraints. SQLite checks them again.

        Args:
            constraints: (position of a column from 0, value) of each equality.
        """
        rows: Sequence[Row] = catalogue.rows[table]
        if catalogue is not self._catalogue:
            return rows  # The schema has changed since the statement began, and the index is of the present schema.
        for column, value in constraints:
            kind, index = self._by_column.get((table, column)) or self._index(table, column, rows)
            if kind is type(value):
                # The constraint on one column selects few rows. SQLite's own rules compare values of different types.
                return index.get(value, ())
        return rows

    def _index(self, table: str, column: int, rows: Sequence[Row]) -> tuple[type | None, dict[Any, list[Row]]]:
        index: dict[Any, list[Row]] = {}
        for row in rows:
            index.setdefault(row[column], []).append(row)
        kinds = {int if isinstance(key, int) else type(key) for key in index}
        entry = (kinds.pop() if len(kinds) == 1 else None, index)
        self._by_column[table, column] = entry
        return entry


class _Module:
    """One catalogue table; the module has the same name."""

    def __init__(self, reader: CatalogueReader) -> None:
        self._reader = reader

    def Connect(self, connection: apsw.Connection, modulename: str, databasename: str, tablename: str, *args: Any) -> tuple[str, _Table]:
        # Views and triggers must not use these tables: plain SQLite could not read such a schema.
        connection.vtab_config(apsw.SQLITE_VTAB_DIRECTONLY)
        # The arguments of a table are its hidden columns in their order.
        arguments = _SESSION_COLUMNS if modulename in SESSION_TABLES else ()
        columns = [f'"{name}" {_DECLARED.get(kind, kind)}' for name, kind in columns_of(TABLES[modulename])]
        declared = ", ".join([*columns, *(f'"{name}" hidden' for name in (*arguments, "tableoid"))])
        return f"create table t({declared})", _Table(self._reader, modulename, len(columns), len(columns) + len(arguments))

    Create = Connect


_DECLARED = {"char1": '"char"'}
SESSION_TABLES = ("pg_roles", "pg_user")
"""Tables that are given the names of the session, see `triplicate.sql.pg.rewrite.catalogue_queries`."""
_SESSION_COLUMNS = ("of_session", "of_login")


class _Table:
    """Args:
    width: the number of its columns. oid_at: the position of `tableoid`, behind them and the table's arguments.
    """

    def __init__(self, reader: CatalogueReader, name: str, width: int, oid_at: int) -> None:
        self._reader = reader
        self._name = name
        self._width = width
        self._oid_at = oid_at

    def BestIndex(self, constraints: Sequence[tuple[int, int]], _orders: object) -> Any:
        used: list[Any] = []
        columns: list[str] = []
        for column, operator in constraints:
            if operator == apsw.SQLITE_INDEX_CONSTRAINT_EQ and 0 <= column < self._oid_at:
                used.append((len(columns), column >= self._width))
                columns.append(str(column))
            else:
                used.append(None)
        return used, 0, ",".join(columns), False, _SCANNED_ROWS / 10 ** len(columns)

    def Open(self) -> _Cursor:
        return _Cursor(self._reader, self._name, self._width, self._oid_at)

    def Disconnect(self) -> None:
        """There is nothing to close."""

    Destroy = Disconnect


class _Cursor:
    def __init__(self, reader: CatalogueReader, name: str, width: int, oid_at: int) -> None:
        self._reader = reader
        self._catalogue = reader.read()
        self._name = name
        self._width = width
        self._oid_at = oid_at
        self._rows: Iterator[Row] = iter(())
        self._row: Row | None = None
        self._number = 0

    def Filter(self, _number: int, columns: str | None, values: Sequence[Any] | None) -> None:
        numbers = [int(column) for column in columns.split(",")] if columns else []
        given = list(zip(numbers, values or (), strict=True))
        session = [value for number, value in sorted(given, key=lambda one: one[0]) if number >= self._width]
        rows = self._reader.rows(self._catalogue, self._name, [(number, value) for number, value in given if number < self._width])
        self._rows = iter(rows)
        if len(session) == len(_SESSION_COLUMNS):
            self._rows = chain(self._rows, self._catalogue.roles.of_session(self._name, *session))
        self._number = 0
        self.Next()

    def Eof(self) -> bool:
        return self._row is None

    def Rowid(self) -> int:
        return self._number

    def Column(self, number: int) -> Any:
        assert self._row is not None, "SQLite reads columns of an existing row only"
        if number == self._oid_at:
            return SYSTEM_OIDS.get(self._name, 0)
        return self._number if number < 0 else self._row[number] if number < self._width else None

    def Next(self) -> None:
        self._row = next(self._rows, None)
        self._number += 1

    def Close(self) -> None:
        self._row = None


def register_tables(connection: apsw.Connection) -> CatalogueReader:
    """Register the catalogue's tables on a connection. Returns the reader, which its functions use too."""
    reader = CatalogueReader(connection)
    for name in TABLES:
        module = LiveModule() if name in LIVE_TABLES else _Module(reader)
        connection.create_module(name, module, eponymous=True, eponymous_only=True, read_only=True)  # type: ignore[arg-type]
    return reader
