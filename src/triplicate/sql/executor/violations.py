"""Which constraint of which table a statement has violated: SQLite's message names the columns at best."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import apsw

from triplicate.errors import SqlError, Violation
from triplicate.sql.catalogue.constraint_names import check_names, column_names, foreign_key_name, index_name, key_name
from triplicate.sql.catalogue.schema_facts import RelationFacts, read_facts
from triplicate.sql.core.schema_cache import LONG_TEXT

_COLUMNS = re.compile(r"(UNIQUE|NOT NULL) constraint failed: ([^.]+)\.(.+)", re.DOTALL)
_INDEX = re.compile(r"UNIQUE constraint failed: index '(.+)'", re.DOTALL)
_CHECK = re.compile(r"CHECK constraint failed: (.+)", re.DOTALL)
_TARGET = re.compile(
    r"\s*(INSERT|REPLACE|UPDATE|DELETE)\b(?:\s+OR\s+\w+)?(?:\s+(?:INTO|FROM)\b)?\s+"
    r"(?:\"?main\"?\s*\.\s*)?(?:\"((?:[^\"]|\"\")+)\"|(\w+))",
    re.IGNORECASE,
)
"""The verb of a statement, and the table that it changes."""
_TITLE = "-- TRIGGER "
_REFERRING = """
SELECT DISTINCT m.name FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' AND lower(f."table") = ?
"""


def with_violation(failure: SqlError, connection: apsw.Connection, sql: str) -> SqlError:
    """The failure of a statement, with the violated constraint if it is one of a constraint, and which one is certain. One of a value
    names the triggers that compute some, since their table's users need not know them.

    Args:
        sql: the statement, which may have violated it through a trigger or an action of a foreign key.
    """
    if failure.sqlstate.startswith("23"):
        with suppress(apsw.Error):
            failure.violation = _violation_of(connection, failure.message, sql)
    elif failure.sqlstate.startswith("22") and failure.context is None and len(sql) <= LONG_TEXT:
        with suppress(apsw.Error, UnicodeError):
            triggers = _computing_triggers(connection, sql)
            failure.context = f"The statement runs triggers: {', '.join(triggers)}" if triggers else None
    return failure


def _computing_triggers(connection: apsw.Connection, sql: str) -> list[str]:
    """The names of the triggers that a statement runs, and that call functions. EXPLAIN shows the program of each."""
    found: dict[str, None] = {}
    name = ""
    cursor = connection.cursor()
    try:
        for row in cursor.execute(f"EXPLAIN {sql}", apsw._null_bindings, can_cache=False):  # type: ignore[attr-defined]
            operation, title = str(row[1]), str(row[5])
            if operation == "Init":
                name = title.removeprefix(_TITLE) if title.startswith(_TITLE) else ""
            elif name and operation in ("Function", "PureFunc"):
                found[name] = None
    finally:
        cursor.close(True)
    return list(found)


def _violation_of(connection: apsw.Connection, message: str, sql: str) -> Violation | None:
    if match := _COLUMNS.fullmatch(message):
        return _of_columns(connection, match[1], match[2], match[3].split(f", {match[2]}."))
    if match := _INDEX.fullmatch(message):
        rows = connection.execute("SELECT tbl_name FROM sqlite_schema WHERE type = 'index' AND name = ?", (match[1],))
        return next((Violation("23505", str(table), (), match[1]) for (table,) in rows), None)
    if match := _CHECK.fullmatch(message):
        return _of_check(connection, match[1], sql)
    if message == "FOREIGN KEY constraint failed":
        return _of_foreign_key(connection, sql)
    return None


def _relation(connection: apsw.Connection, table: str) -> RelationFacts | None:
    return next(iter(read_facts(connection, table)), None)


def _of_columns(connection: apsw.Connection, kind: str, table: str, columns: list[str]) -> Violation | None:
    relation = _relation(connection, table)
    if relation is None:
        return None
    if kind == "NOT NULL":
        return Violation("23502", relation.name, tuple(columns))
    if list(relation.key) == columns:
        return Violation("23505", relation.name, tuple(columns), key_name(relation))
    names = [index_name(relation, index) for index in relation.indexes if index.unique and column_names(relation, index) == columns]
    return Violation("23505", relation.name, tuple(columns), names[0]) if names else None


def _of_check(connection: apsw.Connection, text: str, sql: str) -> Violation | None:
    """SQLite names the constraint or, if it has no name, its expression. Several tables may have it."""
    _, target = _target_of(sql)
    found: list[Violation] = []
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?)", (text,)).fetchall()
    for (table,) in rows:
        relation = _relation(connection, str(table))
        for name, check in check_names(relation) if relation is not None else ():
            if text in (check.name, check.expression):
                violation = Violation("23514", str(table), (), name)
                if str(table).lower() == target:
                    return violation
                found.append(violation)
    return found[0] if len(found) == 1 else None


def _of_foreign_key(connection: apsw.Connection, sql: str) -> Violation | None:
    """SQLite does not name it. It is certain where the table has one foreign key only, or one only refers to the table."""
    verb, target = _target_of(sql)
    relation = _relation(connection, target) if target else None
    if relation is None:
        return None
    found: list[Violation] = []
    if verb != "DELETE":
        own = ((key, foreign_key_name(relation, key)) for key in relation.foreign_keys)
        found += [Violation("23503", relation.name, key.columns, name, key.table) for key, name in own]
    if verb != "INSERT":
        found += _referring(connection, relation.name)
    return found[0] if len(found) == 1 else None


def _referring(connection: apsw.Connection, table: str) -> Iterator[Violation]:
    """The foreign keys that refer to a table."""
    for (name,) in connection.execute(_REFERRING, (table.lower(),)).fetchall():
        relation = _relation(connection, str(name))
        if relation is None:
            continue
        for key in relation.foreign_keys:
            if key.table.lower() == table.lower():
                yield Violation("23503", table, (), foreign_key_name(relation, key), str(name), is_referred=True)


def _target_of(sql: str) -> tuple[str, str]:
    """The verb of a statement, and the table that it changes, in lower case; both empty if that is not clear."""
    match = _TARGET.match(sql)
    if match is None:
        return "", ""
    return match[1].upper(), (match[2].replace('""', '"') if match[2] is not None else match[3]).lower()
