"""Changes of a table for which SQLite has no statement: an empty table is dropped and created again with the new definition.

Migrations of frameworks use ``ADD FOREIGN KEY``, ``ALTER COLUMN … TYPE`` and ``DROP DEFAULT`` right after they have created a table. An
empty table has no rows to lose or to convert. A table with rows can get a foreign key, by a change of its text; the others are refused.
``ADD UNIQUE`` becomes a unique index, which checks rows as a constraint does. The module is pure except for queries on a connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.table_definitions import read_table
from triplicate.sql.core.added_references import AddedReference, with_constraint
from triplicate.sql.core.brackets import closing, items
from triplicate.sql.core.lexer import Token, first_words, identifier, quote, sqlite_tokens
from triplicate.sql.core.view_columns import has_types
from triplicate.sql.storage.sqlite_file import full_image_tables

_CLAUSES = {"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "ON"}

ADD_FOREIGN_KEY = "ADD FOREIGN KEY"
_TYPE = "ALTER COLUMN … TYPE"

_CONSTANT = re.compile(r"[xX]'[^']*'|[+-]?\s*(?:0[xX][0-9a-fA-F]+|(?=[\d.])\d*\.?\d*(?:[eE][+-]?\d+)?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """ADD [CONSTRAINT name] UNIQUE (columns)."""

    statement: str


@dataclass(frozen=True, slots=True)
class Redefinition:
    """One change of CREATE TABLE. `column` empty: `text` is a constraint of the table."""

    table: str
    action: str
    """The client's words for it, for errors."""
    column: str = ""
    text: str | None = None
    """The new type or the constraint; None removes the column's default."""


def parse_redefinition(sql: str) -> UniqueIndex | Redefinition | None:
    """Parse an ALTER TABLE of this module; None for any other statement."""
    found = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else "" for token in found]
    if words[:2] != ["ALTER", "TABLE"] or len(found) < 6:
        return None
    table = identifier(found[2])
    if words[3] == "ADD":
        at = 6 if words[4] == "CONSTRAINT" else 4
        if words[at : at + 2] == ["FOREIGN", "KEY"]:
            return Redefinition(table, ADD_FOREIGN_KEY, text=sql[found[4].start : found[-1].end])
        if words[at : at + 1] == ["UNIQUE"]:
            return _unique(sql, found, at, table, identifier(found[5]) if at == 6 else None)
        return None
    if words[3] != "ALTER":
        return None
    at = 5 if words[4] == "COLUMN" else 4
    column, rest = identifier(found[at]), words[at + 1 :]
    if rest[:1] == ["TYPE"] or rest[:3] == ["SET", "DATA", "TYPE"]:
        start = at + 1 + (1 if rest[0] == "TYPE" else 3)
        return Redefinition(table, _TYPE, column, sql[found[start].start : found[-1].end])
    if rest == ["DROP", "DEFAULT"]:
        return Redefinition(table, "ALTER COLUMN … DROP DEFAULT", column)
    return None


def _unique(sql: str, found: Sequence[Token], at: int, table: str, name: str | None) -> UniqueIndex:
    columns = [identifier(item[0]) for item in items(found, at + 1) if item]
    name = name or f"{table}_{'_'.join(columns)}_key"
    listed = sql[found[at + 1].start : found[closing(found, at + 1)].end]
    return UniqueIndex(f"CREATE UNIQUE INDEX {quote(name)} ON {quote(table)} {listed}")


def examined(change: UniqueIndex | Redefinition) -> str:
    """A statement of SQLite that is allowed when the change is, to be examined in its place."""
    return change.statement if isinstance(change, UniqueIndex) else f"DROP TABLE {quote(change.table)}"


def statements(connection: apsw.Connection, change: UniqueIndex | Redefinition) -> list[str]:
    """SQLite's statements for the change, in their order.

    Raises:
        SqlError: 42P01, 42703, there is no such table or column; 0A000, the table has rows, or a part that cannot be created again.
    """
    if isinstance(change, UniqueIndex):
        return [change.statement]
    name, created = table_of(connection, change.table)
    if change.text is not None and change.action == ADD_FOREIGN_KEY and obstacle(connection, name, change.action) is not None:
        return [_added_to_rows(connection, name, created, change.text)]
    _require_empty(connection, name, change.action)
    if change.action == _TYPE:
        _refuse_types_of_views(connection, name, change.column)
    rest = connection.execute(
        "select sql from main.sqlite_schema where tbl_name = ? and type <> 'table' and sql is not null order by type <> 'index', name",
        (name,),
    ).fetchall()
    return [f"DROP TABLE {quote(name)}", redefined(created, change), *[str(sql) for (sql,) in rest]]


def table_of(connection: apsw.Connection, table: str) -> tuple[str, str]:
    """(name, text) of a table. Raises SqlError 42P01."""
    query = "select name, sql from main.sqlite_schema where type = 'table' and lower(name) = lower(?)"
    rows = connection.execute(query, (table,)).fetchall()
    if not rows:
        raise SqlError("42P01", f"no such table: {table}")
    return str(rows[0][0]), str(rows[0][1])


def _require_empty(connection: apsw.Connection, table: str, action: str) -> None:
    found = obstacle(connection, table, action)
    if found is not None:
        raise found


def _refuse_types_of_views(connection: apsw.Connection, table: str, column: str) -> None:
    """Refuse another type of a column on which the types that a view keeps may depend. Raises SqlError 0A000."""
    for name, sql in connection.execute("select name, sql from main.sqlite_schema where type = 'view' order by name"):
        names = {identifier(token).lower() for token in sqlite_tokens(str(sql)) if token.kind in ("word", "quoted")}
        if has_types(str(sql)) and {table.lower(), column.lower()} <= names:
            raise SqlError(
                "0A000",
                f'cannot alter type of a column used by a view: view "{name}" uses {column}',
                hint="Drop the view, and create it again afterwards.",
            )


def obstacle(connection: apsw.Connection, table: str, action: str) -> SqlError | None:
    """Why a table cannot be dropped and created again; None where it can."""
    hint = "Make another table with the new definition, copy the rows, drop this one and rename the other."
    if connection.execute(f"select 1 from main.{quote(table)} limit 1").fetchall():
        return SqlError("0A000", f'ALTER TABLE … {action} needs an empty table, and "{table}" holds rows', hint=hint)
    counted = connection.execute("select 1 from main.sqlite_schema where name = 'sqlite_sequence'").fetchall()
    if counted and connection.execute("select 1 from main.sqlite_sequence where name = ?", (table,)).fetchall():
        return SqlError("0A000", f'ALTER TABLE … {action} needs a table that never held rows: "{table}" has counted some', hint=hint)
    if table in full_image_tables(connection):
        return SqlError("0A000", f'ALTER TABLE … {action} is not available while the change images of "{table}" are full')
    return None


def _added_to_rows(connection: apsw.Connection, table: str, created: str, text: str) -> str:
    """The statement in the log that adds a foreign key to a table with rows. Its constraint has a name, which PostgreSQL would give it.

    Raises:
        SqlError, apsw.SQLError: SQLite does not accept the constraint; 42P01, the table that it refers to does not exist.
    """
    require_ordinary(created, ADD_FOREIGN_KEY)
    # SQLite checks the text as that of a temporary table of the same name, since expressions in it may have the name.
    rest = with_constraint(created, text)[sqlite_tokens(created)[3].start :]
    connection.execute("savepoint triplicate_probe")
    try:
        connection.execute(f"CREATE TEMP TABLE {quote(table)} {rest}")
        ((parent, columns),) = connection.execute(
            "select \"table\", group_concat(\"from\", '_') from pragma_foreign_key_list(?, 'temp') where id = 0", (table,)
        ).fetchall()
    finally:
        connection.execute("rollback to triplicate_probe; release triplicate_probe")
    table_of(connection, str(parent))
    if not text.upper().startswith("CONSTRAINT"):
        text = f"CONSTRAINT {quote(_free_name(created, f'{table}_{columns}_fkey'))} {text}"
    return AddedReference(table, text).sql


def _free_name(created: str, wanted: str) -> str:
    used = {name.lower() for name in read_table(created).names.values()}
    numbered = (f"{wanted}{number or ''}" for number in count())
    return next(name for name in numbered if name.lower() not in used)


def refuse_unmatched_rows(connection: apsw.Connection, added: AddedReference) -> None:
    """Check the rows of a table against its newest foreign key.

    Raises:
        SqlError: 23503, a row refers to none; 42830, the referenced columns are not unique.
    """
    try:
        found = connection.execute("select rowid, parent from pragma_foreign_key_check(?, 'main') where fkid = 0 limit 1", (added.table,))
        rows = found.fetchall()
    except apsw.SQLError as error:
        if "foreign key mismatch" not in str(error):
            raise
        raise SqlError("42830", f"there is no unique constraint matching given keys for the referenced table: {error}") from error
    if not rows:
        return
    keys = connection.execute(
        "select \"from\" from pragma_foreign_key_list(?, 'main') where id = 0 order by seq", (added.table,)
    ).fetchall()
    columns, (rowid, parent) = [str(column) for (column,) in keys], rows[0]
    name = identifier(sqlite_tokens(added.constraint)[1])
    query = f"select {', '.join(map(quote, columns))} from main.{quote(added.table)} where _rowid_ = ?"
    values = connection.execute(query, (rowid,)).fetchall() if rowid is not None else []
    shown = ", ".join(map(str, values[0])) if values else ""
    detail = f'Key ({", ".join(columns)})=({shown}) is not present in table "{parent}".' if values else None
    raise SqlError("23503", f'insert or update on table "{added.table}" violates foreign key constraint "{name}"', detail=detail)


def require_ordinary(created: str, action: str) -> None:
    """Raises SqlError 0A000 if the text is of a virtual table."""
    if first_words(sqlite_tokens(created), 2) != ["CREATE", "TABLE"]:
        raise SqlError("0A000", f"ALTER TABLE … {action} is not available for a virtual table")


def redefined(created: str, change: Redefinition) -> str:
    """The CREATE TABLE with the change in it."""
    tokens = sqlite_tokens(created)
    require_ordinary(created, change.action)
    if not change.column:
        return with_constraint(created, change.text or "")
    opening = next(index for index, token in enumerate(tokens) if token.text == "(")
    for item in items(tokens, opening):
        if change.text is not None and _is_key(item, change.column):
            raise SqlError("0A000", f"ALTER TABLE … {change.action} is not available for a primary key")
    for item in items(tokens, opening):
        is_column = bool(item) and not (item[0].kind == "word" and item[0].text.upper() in _CLAUSES | {"FOREIGN"})
        if is_column and identifier(item[0]).lower() == change.column.lower():
            return _with_column(created, item, change)
    raise SqlError("42703", f'column "{change.column}" of relation "{change.table}" does not exist')


def _is_key(item: Sequence[Token], column: str) -> bool:
    """Whether this is a PRIMARY KEY of one column, which may be the rowid, or need its NOT NULL."""
    words = [token.text.upper() if token.kind == "word" else "" for token in item]
    if "PRIMARY" not in words or (words[0] != "PRIMARY" and words[:1] + words[2:3] != ["CONSTRAINT", "PRIMARY"]):
        return False
    listed = items(item, next((index for index, token in enumerate(item) if token.text == "("), len(item) - 1))
    return len(listed) == 1 and bool(listed[0]) and identifier(listed[0][0]).lower() == column.lower()


def _with_column(created: str, item: Sequence[Token], change: Redefinition) -> str:
    words = [token.text.upper() if token.kind == "word" else "" for token in item]
    if "PRIMARY" in words:
        raise SqlError("0A000", f"ALTER TABLE … {change.action} is not available for a primary key")
    end = next((index for index in range(1, len(item)) if words[index] in _CLAUSES), len(item))
    place = next((index for index in range(end, len(item)) if words[index] == "DEFAULT"), None)
    if change.text is None:
        if place is None:
            return created
        return created[: item[place].start].rstrip() + created[_default_end(created, item, place + 1) :]
    if place is not None:
        raise SqlError(
            "0A000", f"ALTER TABLE … {change.action} of a column with a default is not available", hint="Drop the default first."
        )
    return f"{created[: item[0].end]} {change.text}{created[item[end - 1].end :]}"


def _default_end(sql: str, item: Sequence[Token], start: int) -> int:
    """Index of the end of the value after DEFAULT. x'00', .5 and 1e-05 are several tokens here."""
    if item[start].text == "(":
        return item[closing(item, start)].end
    found = _CONSTANT.match(sql, item[start].start)
    return item[start].end if found is None else found.end()
