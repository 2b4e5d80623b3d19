"""Keys of tables that exist: ADD PRIMARY KEY, DROP CONSTRAINT of a key, and what depends on a key.

A table that holds rows gets a unique index, which `core.primary_keys` describes; its rows are read, and not copied. An empty one is made
again with the key, except where the key would be the rowid: SQLite numbers an omitted key then, and PostgreSQL refuses it. The module is
pure except for queries on a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.brackets import closing, items
from triplicate.sql.core.lexer import Token, identifier, quote, sqlite_tokens
from triplicate.sql.core.primary_keys import key_index
from triplicate.sql.executor.redefinitions import Redefinition, obstacle, require_ordinary, table_of
from triplicate.sql.executor.redefinitions import statements as redefining_statements
from triplicate.sql.storage.sqlite_schema import key_index_of, key_of

_SHOWN_CHARACTERS = 200
"""Characters of a value in an error's detail."""


@dataclass(frozen=True, slots=True)
class AddedKey:
    """ADD [CONSTRAINT name] PRIMARY KEY (columns)."""

    table: str
    columns: tuple[str, ...]
    name: str | None = None


class DroppedConstraint(NamedTuple):
    """DROP CONSTRAINT name."""

    table: str
    name: str


def _words(found: Sequence[Token]) -> list[str]:
    return [token.text.upper() if token.kind == "word" else "" for token in found]


def parse_added_key(sql: str) -> AddedKey | None:
    """Parse ALTER TABLE … ADD PRIMARY KEY; None for any other statement.

    Raises:
        SqlError: 42601, a syntax error.
    """
    found = sqlite_tokens(sql)
    words = _words(found)
    if words[:2] != ["ALTER", "TABLE"] or words[3:4] != ["ADD"]:
        return None
    at = 6 if words[4:5] == ["CONSTRAINT"] else 4
    if words[at : at + 2] != ["PRIMARY", "KEY"]:
        return None
    opening = at + 2
    if opening >= len(found) or found[opening].text != "(":
        raise _syntax_error(found[opening:])
    end = closing(found, opening)
    listed = items(found, opening)
    for item in listed:
        if len(item) != 1 or item[0].kind not in ("word", "quoted"):
            raise _syntax_error(item[1:] or item or found[end:])
    if end + 1 < len(found):
        raise _syntax_error(found[end + 1 :])
    return AddedKey(identifier(found[2]), tuple(identifier(item[0]) for item in listed), identifier(found[5]) if at == 6 else None)


def _syntax_error(rest: Sequence[Token]) -> SqlError:
    return SqlError("42601", f'syntax error at or near "{rest[0].text}"' if rest else "syntax error at end of input")


def parse_dropped_constraint(sql: str) -> DroppedConstraint | None:
    """Parse ALTER TABLE … DROP CONSTRAINT; None for any other statement."""
    found = sqlite_tokens(sql)
    words = _words(found)
    if words[:2] != ["ALTER", "TABLE"] or words[3:5] != ["DROP", "CONSTRAINT"] or len(found) != 6:
        return None
    return DroppedConstraint(identifier(found[2]), identifier(found[5]))


# ADD PRIMARY KEY.


def key_statements(connection: apsw.Connection, added: AddedKey) -> list[str]:
    """SQLite's statements that add a primary key, in their order.

    Raises:
        SqlError: 42P01, there is no such table; 42703, 42701, no such column, or one that is named twice; 42P16, the table has a primary
            key; 42P07, there is a relation of the constraint's name; 0A000, the table is virtual, or a foreign key refers to the key that
            is not there yet.
    """
    table, created = table_of(connection, added.table)
    require_ordinary(created, "ADD PRIMARY KEY")
    columns = _columns(connection, table, added)
    if key_of(connection, table):
        raise SqlError("42P16", f'multiple primary keys for table "{table}" are not allowed')
    nullable = [f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(one.name)} SET NOT NULL" for one in columns if not one.not_null]
    names = [one.name for one in columns]
    index = _free_name(connection, table, added.name)
    if _would_number_rows(columns) or any(one.generated for one in columns) or obstacle(connection, table, "ADD PRIMARY KEY") is not None:
        _refuse_open_references(connection, table, names)
        return [*nullable, key_index(index, table, names)]
    named = f"CONSTRAINT {quote(added.name)} " if added.name is not None else ""
    text = f"{named}PRIMARY KEY ({', '.join(map(quote, names))})"
    return [*redefining_statements(connection, Redefinition(table, "ADD PRIMARY KEY", text=text)), *nullable]


class _Column(NamedTuple):
    name: str
    declared: str
    not_null: bool
    generated: bool


def _would_number_rows(columns: Sequence[_Column]) -> bool:
    """Whether CREATE TABLE with this key would make it another name of the rowid, which SQLite gives a number where it is left out."""
    return len(columns) == 1 and columns[0].declared.upper() == "INTEGER"


def _columns(connection: apsw.Connection, table: str, added: AddedKey) -> list[_Column]:
    rows = connection.execute("select name, type, \"notnull\", hidden from pragma_table_xinfo(?, 'main')", (table,)).fetchall()
    known = {str(name).lower(): _Column(str(name), str(declared or ""), bool(no), bool(hidden)) for name, declared, no, hidden in rows}
    found: list[_Column] = []
    for name in added.columns:
        column = known.get(name.lower())
        if column is None:
            raise SqlError("42703", f'column "{name}" named in key does not exist')
        if column in found:
            raise SqlError("42701", f'column "{column.name}" appears twice in primary key constraint')
        found.append(column)
    return found


def _free_name(connection: apsw.Connection, table: str, name: str | None) -> str:
    """The name of the constraint: the given one, else the first of ``t_pkey``, ``t_pkey1``, … that is free, as in PostgreSQL."""
    used = {str(one).lower() for (one,) in connection.execute("select name from main.sqlite_schema")}
    if name is not None and name.lower() in used:
        raise SqlError("42P07", f'relation "{name}" already exists')
    wanted, number = name or f"{table}_pkey", 0
    while wanted.lower() in used:
        number += 1
        wanted = f"{table}_pkey{number}"
    return wanted


def _refuse_open_references(connection: apsw.Connection, table: str, columns: Sequence[str]) -> None:
    """Refuse a key that a foreign key without columns would look for: SQLite finds only one that CREATE TABLE declares."""
    for child in [reference.child for reference in _references_to(connection, table) if not reference.columns]:
        raise SqlError(
            "0A000",
            f'ALTER TABLE … ADD PRIMARY KEY is not available while table "{child}" refers to "{table}" without naming columns',
            hint=f"Make that table again with REFERENCES {quote(table)} ({', '.join(map(quote, columns))}).",
        )


class _KeyReference(NamedTuple):
    """A foreign key. `columns` are those that it refers to, in lower case; empty where it names none."""

    child: str
    columns: frozenset[str]


def _references_to(connection: apsw.Connection, table: str) -> list[_KeyReference]:
    rows = connection.execute(
        "select m.name, f.id, f.\"to\" from main.sqlite_schema m join pragma_foreign_key_list(m.name, 'main') f"
        " where m.type = 'table' and lower(f.\"table\") = lower(?) order by 1, 2",
        (table,),
    )
    found: dict[tuple[str, int], set[str]] = {}
    for child, number, column in rows:
        found.setdefault((str(child), int(number)), set()).update(() if column is None else (str(column).lower(),))
    return [_KeyReference(child, frozenset(columns)) for (child, _), columns in found.items()]


def duplicate_key(connection: apsw.Connection, sql: str) -> SqlError | None:
    """The error of a CREATE UNIQUE INDEX on columns of which rows have equal values; None for any other statement."""
    found = sqlite_tokens(sql)
    words = _words(found)
    if words[:3] != ["CREATE", "UNIQUE", "INDEX"] or words[4:5] != ["ON"] or len(found) < 8 or found[6].text != "(":
        return None
    listed = items(found, 6)
    if any(len(item) != 1 for item in listed) or closing(found, 6) + 1 < len(found):
        return None
    columns = [identifier(item[0]) for item in listed]
    quoted = [quote(column) for column in columns]
    query = (
        f"select {', '.join(quoted)} from main.{quote(identifier(found[5]))} where {' and '.join(f'{one} is not null' for one in quoted)}"
        f" group by {', '.join(quoted)} having count(*) > 1 limit 1"
    )
    rows = connection.execute(query).fetchall()
    detail = f"Key ({', '.join(columns)})=({', '.join(map(_shown, rows[0]))}) is duplicated." if rows else None
    return SqlError("23505", f'could not create unique index "{identifier(found[3])}"', detail=detail)


def _shown(value: object) -> str:
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


# Dependents of a key.


def with_key_columns(connection: apsw.Connection, sql: str) -> str:
    """A definition in which each REFERENCES without columns names those of the key, where the key is an index.

    SQLite would accept it as it is written, and fail with the first row that refers to the table.
    """
    found = sqlite_tokens(sql)
    words = _words(found)
    if words[:2] not in (["CREATE", "TABLE"], ["ALTER", "TABLE"]) or "REFERENCES" not in words:
        return sql
    for at in reversed(range(len(found) - 1)):
        if words[at] != "REFERENCES" or (at + 2 < len(found) and found[at + 2].text == "("):
            continue
        key = key_index_of(connection, identifier(found[at + 1]))
        if key is not None:
            end = found[at + 1].end
            sql = f"{sql[:end]} ({', '.join(map(quote, key.columns))}){sql[end:]}"
    return sql


def dropping_statement(connection: apsw.Connection, dropped: DroppedConstraint, sql: str) -> str:
    """SQLite's statement for DROP CONSTRAINT: DROP INDEX where a unique index has the name, else the statement as it is.

    Raises:
        SqlError: 42P01, there is no such table; 2BP01, a foreign key depends on the constraint.
    """
    table, _ = table_of(connection, dropped.table)
    unique = connection.execute(
        "select name from pragma_index_list(?, 'main') where \"unique\" and origin = 'c' and not partial and lower(name) = lower(?)",
        (table, dropped.name),
    ).fetchall()
    if not unique:
        return sql
    name = str(unique[0][0])
    columns = _index_columns(connection, name)
    if columns is None:
        return sql
    for reference in _references_to(connection, table):
        if reference.columns == columns and not _has_other_key(connection, table, name, columns):
            raise SqlError(
                "2BP01",
                f'cannot drop constraint "{name}" on table "{table}" because other objects depend on it',
                detail=f'a foreign key of table "{reference.child}" depends on it',
                hint="Drop what depends on it first.",
            )
    return f"DROP INDEX {quote(name)}"


def _index_columns(connection: apsw.Connection, index: str) -> frozenset[str] | None:
    """The columns of an index in lower case; None where it has an expression."""
    names = [name for (name,) in connection.execute("select name from pragma_index_info(?, 'main')", (index,))]
    return None if None in names else frozenset(str(name).lower() for name in names)


def _has_other_key(connection: apsw.Connection, table: str, index: str, columns: frozenset[str]) -> bool:
    """Whether the columns stay unique without an index."""
    declared = connection.execute("select name from pragma_table_xinfo(?, 'main') where pk > 0", (table,)).fetchall()
    if frozenset(str(name).lower() for (name,) in declared) == columns:
        return True
    others = connection.execute(
        "select name from pragma_index_list(?, 'main') where \"unique\" and not partial and name <> ?", (table, index)
    ).fetchall()
    return any(_index_columns(connection, str(name)) == columns for (name,) in others)


def refuse_broken_key(connection: apsw.Connection, sql: str) -> None:
    """Refuse statements after which a primary key would be none any more: DROP INDEX of its index, and DROP NOT NULL of its columns.

    Raises:
        SqlError: 2BP01, 42P16.
    """
    found = sqlite_tokens(sql)
    words = _words(found)
    if words[:2] == ["DROP", "INDEX"]:
        for token in found[4 if words[2:4] == ["IF", "EXISTS"] else 2 :]:
            if token.kind in ("word", "quoted"):
                _refuse_index(connection, identifier(token))
    if words[:2] != ["ALTER", "TABLE"] or words[3:4] != ["ALTER"] or words[-3:] != ["DROP", "NOT", "NULL"]:
        return
    column = identifier(found[5 if words[4] == "COLUMN" and len(found) > 8 else 4])
    if column.lower() in [one.lower() for one in key_of(connection, identifier(found[2]))]:
        raise SqlError("42P16", f'column "{column}" is in a primary key')


def _refuse_index(connection: apsw.Connection, index: str) -> None:
    rows = connection.execute(
        "select tbl_name from main.sqlite_schema where type = 'index' and lower(name) = lower(?)", (index,)
    ).fetchall()
    key = key_index_of(connection, str(rows[0][0])) if rows else None
    if key is not None and key.name.lower() == index.lower():
        raise SqlError(
            "2BP01",
            f'cannot drop index "{key.name}" because constraint "{key.name}" on table "{rows[0][0]}" requires it',
            hint=f"ALTER TABLE {quote(str(rows[0][0]))} DROP CONSTRAINT {quote(key.name)} drops both.",
        )
