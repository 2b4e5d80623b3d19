"""Changes of a table for which SQLite has no statement: an empty table is dropped and created again with the new definition.

Migrations of frameworks use ``ADD FOREIGN KEY``, ``ALTER COLUMN … TYPE`` and ``DROP DEFAULT`` right after they have created a table. An
empty table has no rows to lose or to convert; a table with rows is refused. ``ADD UNIQUE`` becomes a unique index, which checks rows as a
constraint does. The module is pure except for queries on a connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.table_definitions import closing, items
from triplicate.sql.core.lexer import Token, identifier, quote, sqlite_tokens
from triplicate.sql.storage.sqlite_file import full_image_tables

_CLAUSES = {"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "ON"}

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
            return Redefinition(table, "ADD FOREIGN KEY", text=sql[found[4].start : found[-1].end])
        if words[at : at + 1] == ["UNIQUE"]:
            return _unique(sql, found, at, table, identifier(found[5]) if at == 6 else None)
        return None
    if words[3] != "ALTER":
        return None
    at = 5 if words[4] == "COLUMN" else 4
    column, rest = identifier(found[at]), words[at + 1 :]
    if rest[:1] == ["TYPE"] or rest[:3] == ["SET", "DATA", "TYPE"]:
        start = at + 1 + (1 if rest[0] == "TYPE" else 3)
        return Redefinition(table, "ALTER COLUMN … TYPE", column, sql[found[start].start : found[-1].end])
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
    rows = connection.execute(
        "select type, name, sql from main.sqlite_schema where lower(tbl_name) = lower(?) and sql is not null"
        " order by type <> 'table', type <> 'index', name",
        (change.table,),
    ).fetchall()
    if not rows or rows[0][0] != "table":
        raise SqlError("42P01", f"no such table: {change.table}")
    name, created = str(rows[0][1]), str(rows[0][2])
    _require_empty(connection, name, change.action)
    return [f"DROP TABLE {quote(name)}", redefined(created, change), *[str(sql) for _, _, sql in rows[1:]]]


def _require_empty(connection: apsw.Connection, table: str, action: str) -> None:
    hint = "Make another table with the new definition, copy the rows, drop this one and rename the other."
    if connection.execute(f"select 1 from main.{quote(table)} limit 1").fetchall():
        raise SqlError("0A000", f'ALTER TABLE … {action} needs an empty table, and "{table}" holds rows', hint=hint)
    counted = connection.execute("select 1 from main.sqlite_schema where name = 'sqlite_sequence'").fetchall()
    if counted and connection.execute("select 1 from main.sqlite_sequence where name = ?", (table,)).fetchall():
        raise SqlError("0A000", f'ALTER TABLE … {action} needs a table that never held rows: "{table}" has counted some', hint=hint)
    if table in full_image_tables(connection):
        raise SqlError("0A000", f'ALTER TABLE … {action} is not available while the change images of "{table}" are full')


def redefined(created: str, change: Redefinition) -> str:
    """The CREATE TABLE with the change in it."""
    tokens = sqlite_tokens(created)
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    if opening is None or tokens[1].text.upper() != "TABLE":
        raise SqlError("0A000", f"ALTER TABLE … {change.action} is not available for this table")
    if not change.column:
        end = tokens[closing(tokens, opening)].start
        return f"{created[:end]}, {change.text}{created[end:]}"
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
