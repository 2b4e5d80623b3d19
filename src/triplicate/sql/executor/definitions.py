"""Definitions of PostgreSQL for which SQLite has no statement. The leader runs them as several statements of SQLite, all or none.

``DROP TABLE a, b RESTRICT`` drops several objects, and fails when others depend on them. ``ALTER TABLE t ADD COLUMN IF NOT EXISTS c`` and
``DROP COLUMN IF EXISTS c`` may have nothing to change. ``DROP TRIGGER a ON t`` leaves a trigger of another table alone.
``CREATE TABLE t (columns) AS INSERT INTO t …`` makes a table and fills it. The module is pure except for queries on a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.constraint_names import index_name, key_name
from triplicate.sql.catalogue.schema_facts import read_facts
from triplicate.sql.core.brackets import closing
from triplicate.sql.core.lexer import first_words, identifier, quote, sqlite_tokens
from triplicate.sql.core.schema_changes import ColumnAdded, table_change
from triplicate.sql.core.value_checks import RowRules
from triplicate.sql.executor.redefinitions import examined, parse_redefinition
from triplicate.sql.executor.redefinitions import statements as redefining_statements
from triplicate.sql.executor.stored_queries import stored_queries, view_fault
from triplicate.sql.executor.table_keys import (
    dropping_statement,
    duplicate_key,
    key_statements,
    parse_added_key,
    parse_dropped_constraint,
    refuse_broken_key,
    with_key_columns,
)

_KINDS = ("TABLE", "VIEW", "INDEX")


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP of one or several tables, views or indexes."""

    kind: str
    names: tuple[str, ...]
    if_exists: bool
    keeps_dependents: bool
    """RESTRICT or CASCADE was written, which asks for PostgreSQL's DROP: it fails when other objects depend on the names."""
    cascades: bool

    def statement(self, name: str) -> str:
        """SQLite's statement for one of the names."""
        return f"DROP {self.kind} {'IF EXISTS ' if self.if_exists else ''}{quote(name)}"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """ALTER TABLE … ADD COLUMN IF NOT EXISTS, or DROP COLUMN IF EXISTS."""

    table: str
    column: str
    adds: bool
    sql: str
    """SQLite's statement, for the case that there is something to change."""


@dataclass(frozen=True, slots=True)
class FilledTable:
    """CREATE TABLE with columns AS INSERT, the form that CREATE TABLE AS of PostgreSQL's clients has here. Its columns keep their types."""

    table: str
    if_not_exists: bool
    definition: str
    insert: str


@dataclass(frozen=True, slots=True)
class TriggerDrop:
    """DROP TRIGGER … ON a table. SQLite's statement has no table, because it knows a trigger by its name alone."""

    trigger: str
    table: str
    if_exists: bool
    sql: str
    """SQLite's statement."""


def parse_trigger_drop(sql: str) -> TriggerDrop | None:
    """Parse DROP TRIGGER … ON a table; None for any other statement."""
    found = sqlite_tokens(sql)
    if first_words(found, 2) != ["DROP", "TRIGGER"] or len(found) < 5 or found[-2].text.upper() != "ON":
        return None
    return TriggerDrop(identifier(found[-3]), identifier(found[-1]), len(found) > 5, sql[: found[-3].end])


def parse_filled_table(sql: str) -> FilledTable | None:
    """Parse CREATE TABLE with columns AS INSERT; None for any other statement."""
    found = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else "" for token in found]
    if words[:2] != ["CREATE", "TABLE"]:
        return None
    at = 5 if words[2:5] == ["IF", "NOT", "EXISTS"] else 2
    if at + 1 >= len(found) or found[at + 1].text != "(":
        return None
    end = closing(found, at + 1)
    if words[end + 1 : end + 3] != ["AS", "INSERT"]:
        return None
    return FilledTable(identifier(found[at]), at == 5, sql[: found[end].end], sql[found[end + 2].start :])


def parse_drop(sql: str) -> Drop | None:
    """Parse a DROP that SQLite cannot run by itself; None for any other statement."""
    found = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else "" for token in found]
    if words[:1] != ["DROP"] or len(found) < 4 or words[1] not in _KINDS:
        return None
    at = 4 if words[2:4] == ["IF", "EXISTS"] else 2
    last = words[-1] if words[-1] in ("RESTRICT", "CASCADE") else ""
    end = len(found) - bool(last)
    separators = [token.text for token in found[at + 1 : end : 2]]
    names = [token for token in found[at:end:2] if token.kind in ("word", "quoted")]
    if (not last and len(names) < 2) or not names or any(one != "," for one in separators) or len(names) != len(separators) + 1:
        return None
    listed = tuple(dict.fromkeys(identifier(token) for token in names))
    return Drop(words[1], listed, at == 4, bool(last), last == "CASCADE")


def parse_column_change(sql: str) -> ColumnChange | None:
    """Parse ALTER TABLE … ADD COLUMN IF NOT EXISTS or DROP COLUMN IF EXISTS; None for any other statement."""
    found = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else "" for token in found]
    if words[:2] != ["ALTER", "TABLE"] or len(found) < 7:
        return None
    at = 4 + (words[4] == "COLUMN")
    adds = words[3] == "ADD" and words[at : at + 3] == ["IF", "NOT", "EXISTS"]
    drops = words[3] == "DROP" and words[at : at + 2] == ["IF", "EXISTS"]
    if not (adds or drops):
        return None
    after = at + (3 if adds else 2)
    if after >= len(found):
        return None
    plain = f"{sql[: found[at].start]}{sql[found[after].start :]}"
    return ColumnChange(identifier(found[2]), identifier(found[after]), adds, plain)


def run_definition(connection: apsw.Connection, sql: str, run: Callable[[str], None], insert: Callable[[str], None]) -> None:
    """Run any definition as SQLite's statements, each through `run`. The caller undoes all of them when one fails.

    Args:
        insert: runs the statement that fills a new table.

    Raises:
        SqlError: 2BP01 or 0A000 when another object depends on one that is dropped; and as `key_statements` and `statements` of
            `redefinitions`.
    """
    sql = with_key_columns(connection, sql)
    refuse_broken_key(connection, sql)
    drop, change, redefinition = parse_drop(sql), parse_column_change(sql), parse_redefinition(sql)
    if redefinition is not None:
        for statement in redefining_statements(connection, redefinition):
            run(statement)
    elif (added := parse_added_key(sql)) is not None:
        for statement in key_statements(connection, added):
            run(statement)
    elif (dropped := parse_dropped_constraint(sql)) is not None:
        run(dropping_statement(connection, dropped, sql))
    elif drop is not None:
        usable = _usable_views(connection) if drop.keeps_dependents else frozenset()
        for name in _in_order(connection, drop):
            run(drop.statement(name))
        _refuse_broken_views(connection, drop, usable)
    elif (trigger := parse_trigger_drop(sql)) is not None:
        if _has_trigger(connection, trigger):
            run(trigger.sql)
    elif (filled := parse_filled_table(sql)) is not None:
        if not (filled.if_not_exists and _is_relation(connection, filled.table)):
            run(filled.definition)
            insert(filled.insert)
    elif change is None:
        run(sql)
        _check_added(connection, sql)
    elif has_column(connection, change) is not change.adds:
        run(change.sql)
        _check_added(connection, change.sql)


def _check_added(connection: apsw.Connection, sql: str) -> None:
    """Raises the error of an INSERT when existing rows have got a value that does not fit the type of a new column."""
    if first_words(sqlite_tokens(sql), 2) != ["ALTER", "TABLE"]:
        return
    change = table_change(sql)
    if not isinstance(change, ColumnAdded):
        return
    query = "select name, type from pragma_table_xinfo(?, 'main') where lower(name) = lower(?) and hidden = 0"
    for name, declared in connection.execute(query, (change.table, change.column)).fetchall():
        for row in connection.execute(f"select {quote(str(name))} from main.{quote(change.table)} limit 1").fetchall():
            for rule in RowRules([(0, str(name), str(declared))]).refused(row):
                raise rule.refusal(change.table, row[0])


def _has_trigger(connection: apsw.Connection, drop: TriggerDrop) -> bool:
    """Whether the table has the trigger. Raises SqlError 42P01 or 42704 if it has not, and IF EXISTS was not written."""
    query = "select 1 from main.sqlite_schema where type = 'trigger' and lower(name) = lower(?) and lower(tbl_name) = lower(?)"
    if connection.execute(query, (drop.trigger, drop.table)).fetchall():
        return True
    if drop.if_exists:
        return False
    if not _is_relation(connection, drop.table):
        raise SqlError("42P01", f'relation "{drop.table}" does not exist')
    raise SqlError("42704", f'trigger "{drop.trigger}" for table "{drop.table}" does not exist')


def _is_relation(connection: apsw.Connection, name: str) -> bool:
    query = "select 1 from main.sqlite_schema where type in ('table', 'view') and lower(name) = lower(?)"
    return bool(connection.execute(query, (name,)).fetchall())


def has_column(connection: apsw.Connection, change: ColumnChange) -> bool:
    """Whether the table has the column.

    Raises:
        SqlError: 42P01, there is no such table.
    """
    rows = connection.execute("select name from pragma_table_xinfo(?, 'main')", (change.table,)).fetchall()
    if not rows:
        raise SqlError("42P01", f"no such table: {change.table}")
    return any(str(name).lower() == change.column.lower() for (name,) in rows)


def _in_order(connection: apsw.Connection, drop: Drop) -> list[str]:
    """The names, with referring tables before those that they refer to: SQLite deletes a table's rows before it drops the table.

    Raises:
        SqlError: 2BP01, a table that is not among them refers to one of them.
    """
    if drop.kind != "TABLE":
        return list(drop.names)
    referred = references(connection)
    wanted = {name.lower() for name in drop.names if _is_relation(connection, name)}
    if drop.keeps_dependents:
        for child, parents in referred.items():
            broken = sorted(parents & wanted)
            if child not in wanted and broken:
                raise _dependent(drop, broken[0], f'a foreign key of table "{child}"')
    left, ordered = list(drop.names), list[str]()
    while left:
        free = [name for name in left if not any(name.lower() in referred.get(other.lower(), ()) for other in left if other != name)]
        ordered += free or left[:1]
        left = [name for name in left if name not in ordered]
    return ordered


def references(connection: apsw.Connection) -> dict[str, set[str]]:
    """The foreign keys to other tables: maps each table, in lower case, to those that it refers to."""
    rows = connection.execute(
        "select m.name, f.\"table\" from main.sqlite_schema m join pragma_foreign_key_list(m.name, 'main') f where m.type = 'table'"
    )
    found: dict[str, set[str]] = {}
    for child, parent in rows:
        if str(child).lower() != str(parent).lower():
            found.setdefault(str(child).lower(), set()).add(str(parent).lower())
    return found


def refuse_indexes_of_constraints(connection: apsw.Connection, sql: str) -> None:
    """Raises SqlError 2BP01 if `sql` drops the index of a constraint, which is shown under a name that it does not have in SQLite."""
    drop = parse_drop(sql)
    if drop is None or drop.kind != "INDEX":
        return
    for relation in read_facts(connection):
        constraints = [index_name(relation, index) for index in relation.indexes if index.origin != "c"]
        if relation.key:
            constraints.append(key_name(relation))
        for name in sorted(set(constraints).intersection(drop.names)):
            raise SqlError(
                "2BP01",
                f"cannot drop index {name} because constraint {name} on table {relation.name} requires it",
                hint=f"Drop the constraint instead, with ALTER TABLE {relation.name} DROP CONSTRAINT {name}.",
            )


def _usable_views(connection: apsw.Connection) -> frozenset[str]:
    """The views whose queries can be prepared."""
    return frozenset(name for kind, name in stored_queries(connection) if kind == "view" and view_fault(connection, name) is None)


def _refuse_broken_views(connection: apsw.Connection, drop: Drop, before: frozenset[str]) -> None:
    """Raises SqlError 2BP01 when a view that could be read before can no longer be read."""
    left = _usable_views(connection)
    existing = {name for kind, name in stored_queries(connection) if kind == "view"}
    broken = sorted((before - left) & existing)
    if broken:
        raise _dependent(drop, drop.names[0], f'view "{broken[0]}"')


def _dependent(drop: Drop, name: str, dependent: str) -> SqlError:
    if drop.cascades:
        return SqlError(
            "0A000", f'CASCADE is not available: {dependent} depends on {drop.kind.lower()} "{name}"', hint="Drop what depends on it first."
        )
    return SqlError(
        "2BP01",
        f'cannot drop {drop.kind.lower()} "{name}" because other objects depend on it',
        detail=f"{dependent} depends on it",
        hint="Drop what depends on it first.",
    )


def statements_of(sql: str) -> Sequence[str]:
    """SQLite's statements for a definition of this module, which are examined before it runs; empty for any other statement."""
    drop = parse_drop(sql)
    if drop is not None:
        return [drop.statement(name) for name in drop.names]
    change = parse_column_change(sql)
    if change is not None:
        return [change.sql]
    trigger = parse_trigger_drop(sql)
    if trigger is not None:
        return [trigger.sql]
    filled = parse_filled_table(sql)
    if filled is not None:
        return [filled.definition]
    added = parse_added_key(sql)
    if added is not None:
        return [f"DROP TABLE {quote(added.table)}"]
    redefinition = parse_redefinition(sql)
    return [examined(redefinition)] if redefinition is not None else []


def broken_by_rows(connection: apsw.Connection, sql: str) -> SqlError | None:
    """The error of a constraint or unique index that existing rows violate, since SQLite's error has no details; None otherwise."""
    found = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else "" for token in found]
    if words[:2] != ["ALTER", "TABLE"] or len(found) < 6:
        return duplicate_key(connection, sql)
    table, at = identifier(found[2]), 5 if words[4] == "COLUMN" else 4
    if words[3] == "ALTER" and words[at + 1 : at + 4] == ["SET", "NOT", "NULL"]:
        return SqlError("23502", f'column "{identifier(found[at])}" of table "{table}" contains null values')
    if words[3] == "ADD":
        name = f'"{identifier(found[5])}" ' if words[4] == "CONSTRAINT" else ""
        return SqlError("23514", f'check constraint {name}of table "{table}" is violated by some row')
    return None
