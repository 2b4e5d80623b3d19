"""The tables of a SQLite connection: their shapes as the row log describes them, and the digest of the whole schema."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.interface import SpecialColumns
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.primary_keys import KEY_MARK, is_key_index
from triplicate.sql.core.records import DIGEST_SIZE
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.core.value_checks import RowRules
from triplicate.sql.core.view_columns import view_columns
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
_MARKED = "select name, sql from main.sqlite_schema where type = 'index' and lower(tbl_name) = lower(?) and sql like ? order by name"
_WHOLE = "select name from pragma_index_list(?, 'main') where \"unique\" and not partial"
_KEY_COLUMNS = """
select c.name, c."notnull" from pragma_table_xinfo(?, 'main') c right join pragma_index_info(?, 'main') i on c.cid = i.cid order by i.seqno
"""
_GENERATED_VIRTUAL = 2
_HAS_AS = re.compile(r"\bas\b", re.IGNORECASE)
"""Behind this word stands the expression of a generated column."""
_STORED = (0, 3)
"""Ordinary columns, and generated ones that are stored."""


class _ColumnRow(NamedTuple):
    """One column as ``pragma_table_xinfo`` describes it."""

    number: int
    """From 0, among all columns of the table."""
    name: str
    declared: str
    """The declared type; empty without one."""
    key_position: int
    """Position in the primary key from 1, or 0."""
    hidden: int
    """0 ordinary, 1 hidden, 2 virtual generated, 3 stored generated."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of the main database, with the properties beyond its logged shape that capturing and applying need."""

    shape: TableShape
    real: tuple[int, ...]
    """Positions, from 0, of the shape's columns among all columns of the table, including generated ones."""
    kept: tuple[tuple[int, str], ...]
    """Position and name of every column whose values are stored: those of the shape, and the stored generated ones."""
    rowid_name: str
    """A name of the rowid that is not the name of another column; empty in a WITHOUT ROWID table."""
    has_virtual_columns: bool
    whole: bool
    """Whether the shape has every column of the table, because none is generated."""
    rules: RowRules
    """Checks of the values of its columns. A shadow table has none, because its virtual table determines its values."""

    @property
    def where(self) -> str:
        """The condition that selects one row by rowid or by key."""
        if self.shape.without_rowid:
            return " and ".join(f"{quote(self.shape.columns[index])} is ?" for index in self.shape.key)
        return f"{self.rowid_name} = ?"


def is_internal(name: str) -> bool:
    return name.lower().startswith(INTERNAL_PREFIX)


def load_tables(connection: apsw.Connection) -> dict[str, Table]:
    """The ordinary and shadow tables by name, without SQLite's tables and internal tables."""
    columns_by_table: dict[str, list[_ColumnRow]] = {}
    without_rowid: dict[str, bool] = {}
    shadows: set[str] = set()
    for name, wr, shadow, cid, column, declared, key, hidden in connection.execute(_COLUMNS):
        if not is_internal(str(name)):
            row = _ColumnRow(int(cid), str(column), str(declared or ""), int(key), int(hidden))
            columns_by_table.setdefault(str(name), []).append(row)
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
        for name, columns in columns_by_table.items()
    }


def _table(name: str, columns: list[_ColumnRow], without_rowid: bool, *, has_key_index: bool, is_shadow: bool) -> Table:
    ordinary = [column for column in columns if column.hidden == 0]
    key = tuple(index for index, column in sorted(enumerate(ordinary), key=lambda pair: pair[1].key_position) if column.key_position > 0)
    rowid_column = -1
    # INTEGER PRIMARY KEY is an alias of the rowid and has no index. INTEGER PRIMARY KEY DESC, by an old quirk, is none and has one.
    if not without_rowid and len(key) == 1 and not has_key_index and ordinary[key[0]].declared.upper() == "INTEGER":
        rowid_column = key[0]
    names = {column.name.lower() for column in columns}
    rowid_name = "" if without_rowid else next((alias for alias in ("rowid", "_rowid_", "oid") if alias not in names), "")
    if rowid_column >= 0 and not rowid_name:
        rowid_name = quote(ordinary[rowid_column].name)
    shape = TableShape(
        name,
        tuple(column.name for column in ordinary),
        tuple(column.declared for column in ordinary),
        key,
        rowid_column,
        without_rowid,
    )
    return Table(
        shape=shape,
        real=tuple(column.number for column in ordinary),
        kept=tuple((column.number, column.name) for column in columns if column.hidden in _STORED),
        rowid_name=rowid_name,
        has_virtual_columns=any(column.hidden == _GENERATED_VIRTUAL for column in columns),
        whole=len(ordinary) == len(columns),
        rules=RowRules(
            [] if is_shadow else [(column.number, column.name, column.declared) for column in columns if column.hidden in _STORED]
        ),
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


def relation_kinds(connection: apsw.Connection) -> dict[str, str]:
    """Maps each table and view, its name in small letters as SQLite compares it, to ``table`` or ``view``. Virtual tables are left out."""
    rows = connection.execute("select lower(name), type from main.sqlite_schema where type = 'view' or (type = 'table' and rootpage > 0)")
    return {str(name): str(kind) for name, kind in rows}


def growing_relations(connection: apsw.Connection) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """((name, text) of each view and of each table that may have generated columns, (table or view, text) of each trigger)."""
    rows = connection.execute(
        "select type, case type when 'trigger' then tbl_name else name end, sql from main.sqlite_schema"
        " where type in ('view', 'trigger') or (type = 'table' and sql like '%as%')"
    )
    relations, triggers = list[tuple[str, str]](), list[tuple[str, str]]()
    for kind, name, sql in rows:
        if kind == "trigger":
            triggers.append((str(name), str(sql)))
        elif kind == "view" or _HAS_AS.search(str(sql)):
            relations.append((str(name), str(sql)))
    return relations, triggers


def relations_of(connection: apsw.Connection) -> dict[str, tuple[str, str]]:
    """The users' tables and views: maps the name in lower case to (name, ``table`` or ``view``)."""
    rows = connection.execute(
        "select name, type from main.sqlite_schema where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\'"
        " and name not like 'triplicate\\_%' escape '\\'"
    )
    return {str(name).lower(): (str(name), str(kind)) for name, kind in rows}


def stored_text(connection: apsw.Connection, created: frozenset[str]) -> str | None:
    """The text that SQLite stores for a new table, or None. After CREATE TABLE AS it has the columns, not the query.

    Args:
        created: the name of the one table that the statement has created.
    """
    rows = connection.execute("select sql from main.sqlite_schema where type = 'table' and name = ?", (next(iter(created)),)).fetchall()
    return str(rows[0][0]) if rows else None


def unfit_reason(table: Table) -> str | None:
    """Why rows of this table cannot be logged, or None if they can. Such a table is refused."""
    if table.shape.without_rowid and table.has_virtual_columns:
        return f"table {table.shape.name!r} is WITHOUT ROWID and has a virtual generated column; make the column STORED"
    if not table.shape.without_rowid and not table.rowid_name:
        return f"table {table.shape.name!r} has columns named rowid, _rowid_ and oid, so its rowid has no name; rename one of them"
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
    """Check deferred foreign keys. Raises SqlError 23503 if the open transaction violates one."""
    unresolved, _ = connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)
    if unresolved:
        raise SqlError("23503", "FOREIGN KEY constraint failed")


def key_of(connection: apsw.Connection, table: str) -> list[str]:
    """Names of the columns of a table's primary key, in its order; empty without one. Raises as `columns_of`."""
    rows = _query(connection, "select name from pragma_table_xinfo(?, 'main') where pk > 0 order by pk", table)
    added = key_index_of(connection, table) if not rows else None
    return [str(name) for (name,) in rows] if added is None else list(added.columns)


def special_columns_of(connection: apsw.Connection, table: str) -> SpecialColumns:
    """Those of the key, and the generated ones. Raises as `columns_of`."""
    generated = _query(connection, "select name from pragma_table_xinfo(?, 'main') where hidden in (2, 3)", table)
    return SpecialColumns(key_of(connection, table), [str(name) for (name,) in generated])


class KeyIndex(NamedTuple):
    """The unique index that is a table's primary key, because the key was added to the table."""

    name: str
    columns: tuple[str, ...]


def key_index_of(connection: apsw.Connection, table: str) -> KeyIndex | None:
    """The index that is a table's primary key; None where CREATE TABLE declares the key, and without one.

    Its text has the mark, it is unique and of all rows, and its columns cannot be NULL. Of several such indexes it is the first by name.
    """
    marked = [(str(name), str(sql)) for name, sql in connection.execute(_MARKED, (table, f"%{KEY_MARK}%"))]
    names = [name for name, sql in marked if is_key_index(sql)]
    if not names or connection.execute("select 1 from pragma_table_xinfo(?, 'main') where pk > 0", (table,)).fetchall():
        return None
    whole = {str(name) for (name,) in connection.execute(_WHOLE, (table,))}
    for name in names:
        columns = connection.execute(_KEY_COLUMNS, (table, name)).fetchall()
        if name in whole and all(column is not None and not_null for column, not_null in columns):
            return KeyIndex(name, tuple(str(column) for column, _ in columns))
    return None


_COLUMNS_OF = """
select name, type, (select sql from main.sqlite_schema where type = 'view' and name = ?1 collate nocase)
from pragma_table_xinfo(?1, 'main') where hidden <> 1
"""


def columns_of(connection: apsw.Connection, table: str) -> list[tuple[str, str]] | None:
    """(name, declared type) of the columns of a table or view, in order; None if it does not exist. See `view_columns`.

    Raises:
        SqlError: 42P01, 42703, …: a view's query refers to a table or column that does not exist.
    """
    rows = _query(connection, _COLUMNS_OF, table)
    columns = [(str(name), str(declared or "")) for name, declared, _ in rows]
    return view_columns(str(rows[0][2]), columns) if rows and rows[0][2] is not None else columns or None


def _query(connection: apsw.Connection, query: str, table: str) -> list[Any]:
    try:
        return connection.execute(query, (table,)).fetchall()
    except apsw.SQLError as error:
        raise from_sqlite(error) from error
