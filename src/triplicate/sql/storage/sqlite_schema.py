"""The tables of a SQLite connection: their shapes as the row log describes them, and the digest of the whole schema."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.records import DIGEST_SIZE
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.core.value_checks import RowRules
from triplicate.sql.storage.sqlstates import from_sqlite

INTERNAL_PREFIX = "triplicate_"
"""Prefix of internal tables. Users may read them but not change them, and their changes are not logged."""

_COLUMNS = """
select l.name, l.wr, l.type = 'shadow', x.cid, x.name, x.type, x.pk, x.hidden
from pragma_table_list l join pragma_table_xinfo(l.name, 'main') x
where l.schema = 'main' and l.type in ('table', 'shadow') and l.name not like 'sqlite\\_%' escape '\\'
order by l.name, x.cid
"""
_SCHEMA = """
select type, name, tbl_name, sql from main.sqlite_schema
where name not like 'triplicate\\_%' escape '\\' and tbl_name not like 'triplicate\\_%' escape '\\'
order by type, name
"""
_GENERATED_VIRTUAL = 2
_STORED = (0, 3)
"""Ordinary columns, and generated ones that are stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of the main database, with properties that capturing and applying need beyond its logged shape."""

    shape: TableShape
    real: tuple[int, ...]
    """Positions of the shape's columns among all columns of the table, generated ones included."""
    rowid_name: str
    """A name of the rowid that no column hides; empty in a WITHOUT ROWID table."""
    has_virtual_columns: bool
    whole: bool
    """No generated columns: every column of the table is one of the shape's."""
    rules: RowRules
    """Checks of the values of its columns. A shadow table has none: its virtual table decides about its values."""

    @property
    def where(self) -> str:
        """The condition that selects one row by rowid or by key."""
        if self.shape.without_rowid:
            return " and ".join(f"{quote(self.shape.columns[index])} is ?" for index in self.shape.key)
        return f"{self.rowid_name} = ?"


def is_internal(name: str) -> bool:
    return name.lower().startswith(INTERNAL_PREFIX)


def load_tables(connection: apsw.Connection) -> dict[str, Table]:
    """Every ordinary and shadow table by name, without SQLite's own and internal ones."""
    found: dict[str, list[tuple[int, str, str, int, int]]] = {}
    without_rowid: dict[str, bool] = {}
    shadows: set[str] = set()
    for name, wr, shadow, cid, column, declared, key, hidden in connection.execute(_COLUMNS):
        if not is_internal(str(name)):
            found.setdefault(str(name), []).append((int(cid), str(column), str(declared or ""), int(key), int(hidden)))
            without_rowid[str(name)] = bool(wr)
            if shadow:
                shadows.add(str(name))
    keyed = {
        str(name)
        for (name,) in connection.execute(
            "select m.name from main.sqlite_schema m join pragma_index_list(m.name, 'main') i where m.type = 'table' and i.origin = 'pk'"
        )
    }
    return {
        name: _table(name, columns, without_rowid[name], has_key_index=name in keyed, is_shadow=name in shadows)
        for name, columns in found.items()
    }


def _table(name: str, columns: list[tuple[int, str, str, int, int]], without_rowid: bool, *, has_key_index: bool, is_shadow: bool) -> Table:
    ordinary = [column for column in columns if column[4] == 0]
    key = tuple(index for index, column in sorted(enumerate(ordinary), key=lambda pair: pair[1][3]) if column[3] > 0)
    rowid_column = -1
    # INTEGER PRIMARY KEY is the rowid itself and has no index; INTEGER PRIMARY KEY DESC, by an old quirk, is not and has one.
    if not without_rowid and len(key) == 1 and not has_key_index and ordinary[key[0]][2].upper() == "INTEGER":
        rowid_column = key[0]
    taken = {column[1].lower() for column in columns}
    rowid_name = "" if without_rowid else next((free for free in ("rowid", "_rowid_", "oid") if free not in taken), "")
    if rowid_column >= 0 and not rowid_name:
        rowid_name = quote(ordinary[rowid_column][1])
    shape = TableShape(
        name,
        tuple(column[1] for column in ordinary),
        tuple(column[2] for column in ordinary),
        key,
        rowid_column,
        without_rowid,
    )
    return Table(
        shape=shape,
        real=tuple(column[0] for column in ordinary),
        rowid_name=rowid_name,
        has_virtual_columns=any(column[4] == _GENERATED_VIRTUAL for column in columns),
        whole=len(ordinary) == len(columns),
        rules=RowRules([] if is_shadow else [column[:3] for column in columns if column[4] in _STORED]),
    )


def has_virtual_tables(connection: apsw.Connection) -> bool:
    """Whether the main database has virtual tables."""
    return bool(connection.execute("select 1 from pragma_table_list where schema = 'main' and type = 'virtual' limit 1").fetchall())


def table_names(connection: apsw.Connection) -> frozenset[str]:
    """The names of the users' tables."""
    rows = connection.execute(
        "select name from main.sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
        " and name not like 'triplicate\\_%' escape '\\'"
    )
    return frozenset(str(name) for (name,) in rows)


def stored_text(connection: apsw.Connection, made: frozenset[str]) -> str | None:
    """The text that SQLite stores for a new table. After CREATE TABLE AS it has the columns, not the query."""
    rows = connection.execute("select sql from main.sqlite_schema where type = 'table' and name = ?", (next(iter(made)),)).fetchall()
    return str(rows[0][0]) if rows else None


def unfit_reason(table: Table) -> str | None:
    """Why rows of this table cannot be logged, or None. Such a table is refused."""
    if table.shape.without_rowid and table.has_virtual_columns:
        return f"table {table.shape.name!r} is WITHOUT ROWID and has a virtual generated column; make the column STORED"
    if not table.shape.without_rowid and not table.rowid_name:
        return f"table {table.shape.name!r} has columns named rowid, _rowid_ and oid, which leaves no name for the row's own number"
    return None


def schema_digest(connection: apsw.Connection) -> bytes:
    """16 bytes that change with every table, index, view or trigger: BLAKE2b over type, name, table and text of each."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for row in connection.execute(_SCHEMA):
        for part in row:
            raw = b"" if part is None else str(part).encode()
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.digest()


def check_references(connection: apsw.Connection) -> None:
    """Raises SqlError 23503 when the open transaction violates a deferred foreign key."""
    unresolved, _ = connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)
    if unresolved:
        raise SqlError("23503", "FOREIGN KEY constraint failed")


def key_of(connection: apsw.Connection, table: str) -> list[str]:
    """The columns of a table's primary key; empty where there is none. Raises as `columns_of`."""
    rows = _query(connection, "select name from pragma_table_xinfo(?, 'main') where pk > 0 order by pk", table)
    return [str(name) for (name,) in rows]


def columns_of(connection: apsw.Connection, table: str) -> list[tuple[str, str]] | None:
    """(name, declared type) of a table's or view's columns in order, or None.

    Raises:
        SqlError: 42P01, 42703, …: a view's query refers to a table or column that does not exist.
    """
    rows = _query(connection, "select name, type from pragma_table_xinfo(?, 'main') where hidden <> 1", table)
    return [(str(name), str(declared or "")) for name, declared in rows] or None


def _query(connection: apsw.Connection, query: str, table: str) -> list[Any]:
    try:
        return connection.execute(query, (table,)).fetchall()
    except apsw.SQLError as error:
        raise from_sqlite(error) from error
