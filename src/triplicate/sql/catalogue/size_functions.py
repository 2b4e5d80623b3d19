"""Functions of sizes: the pages that tables, indexes and databases have in SQLite's file. The write-ahead log is not counted.

A table's pages are counted one after the other, as long as reading the whole table takes; SQLite keeps no number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.relations import Catalogue
from triplicate.sql.core.interface import Value

_PAGES = "select coalesce(sum(pgsize), 0) from dbstat where name = ?"
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_BYTES_MAX, _DOUBLED_MAX = 10 * 1024, 20 * 1024 - 1
"""The next unit is used from here, and for twice the number."""
FORKS = ("main", "fsm", "vm", "init")


class SizeFunctions:
    """The functions of one connection.

    Args:
        catalogue: of the present schema. oid: of a relation, given its name or oid.
    """

    def __init__(self, connection: apsw.Connection, catalogue: Callable[[], Catalogue], oid: Callable[[Value], int | None]) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._oid = oid

    def by_name(self) -> dict[str, Callable[..., Any]]:
        return {
            "pg_table_size": self._table_size,
            "pg_relation_size": self._relation_size,
            "pg_indexes_size": self._indexes_size,
            "pg_total_relation_size": self._total_size,
            "pg_database_size": self._database_size,
            "pg_tablespace_size": self._database_size,
            "pg_size_pretty": size_text,
        }

    def _pages(self, oid: int) -> int:
        name = self._catalogue().stored.get(oid)
        return 0 if name is None else int(self._connection.execute(_PAGES, (name,)).get)

    def _table_size(self, relation: Value) -> Value:
        """The bytes of a table without its indexes, or of an index; 0 for a view, and for the index of a rowid."""
        oid = self._oid(relation)
        return None if oid is None else self._pages(oid)

    def _relation_size(self, relation: Value, fork: Value = FORKS[0]) -> Value:
        if fork not in FORKS:
            raise SqlError("22023", "invalid fork name", hint=f"Valid fork names are {', '.join(FORKS)}.")
        return self._table_size(relation) if fork == FORKS[0] else 0

    def _indexes_size(self, relation: Value) -> Value:
        oid = self._oid(relation)
        return None if oid is None else sum(map(self._pages, self._catalogue().indexes.get(oid, ())))

    def _total_size(self, relation: Value) -> Value:
        oid = self._oid(relation)
        return None if oid is None else self._pages(oid) + sum(map(self._pages, self._catalogue().indexes.get(oid, ())))

    def _database_size(self, name: Value) -> Value:
        """The bytes of the session's database; NULL for any other."""
        rows = self._catalogue().rows
        if not any(name in row[:2] for table in ("pg_database", "pg_tablespace") for row in rows[table]):
            return None
        return int(self._connection.pragma("page_count")) * int(self._connection.pragma("page_size"))


def size_text(size: Value) -> Value:
    """A number of bytes with its unit. Source: PostgreSQL 15, `pg_size_pretty`."""
    if size is None:
        return None
    number, unit = abs(int(size)), 0
    if number >= _BYTES_MAX:
        # Twice the size in kB, so that the last step rounds halves up.
        number, unit = number // 512, 1
        while number >= _DOUBLED_MAX and unit + 1 < len(_UNITS):
            number, unit = number // 1024, unit + 1
        number = (number + 1) // 2
    return f"{'-' if int(size) < 0 else ''}{number} {_UNITS[unit]}"
