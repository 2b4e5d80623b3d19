"""A database as SQL text that psql loads: constants, statements, and the order of tables. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triplicate.errors import ArgumentError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote, sqlite_tokens

ROWS_OF_A_STATEMENT = 500
STATEMENT_CHARACTERS = 256 * 1024
"""An INSERT ends with the row that reaches one of these."""
_SMALLEST = -(2**63)


def constant(value: Value, place: str) -> str:
    """A value as a constant that is stored as the same value.

    Args:
        place: names it in errors.

    Raises:
        ArgumentError: a text that no client of PostgreSQL's protocol can send.
    """
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
                raise ArgumentError(f"{place} has a text with characters that SQL text cannot have: export it as a SQLite file")
            return "'" + value.replace("'", "''") + "'"
        case float():
            if math.isinf(value):
                raise ArgumentError(f"{place} has an infinite number, which SQL text cannot have: export it as a SQLite file")
            return repr(value)
    return "(-9223372036854775807 - 1)" if value == _SMALLEST else str(value)


def inserts(table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """INSERT statements with the rows of a table. Raises ArgumentError as `constant`."""
    head = f"INSERT INTO {quote(table)} ({', '.join(map(quote, columns))}) VALUES\n"
    lines: list[str] = []
    size = 0
    for row in rows:
        values = (constant(value, f"column {column!r} of table {table!r}") for column, value in zip(columns, row, strict=True))
        lines.append(f"({', '.join(values)})")
        size += len(lines[-1])
        if len(lines) >= ROWS_OF_A_STATEMENT or size >= STATEMENT_CHARACTERS:
            yield head + ",\n".join(lines) + ";\n"
            lines, size = [], 0
    if lines:
        yield head + ",\n".join(lines) + ";\n"


def loading_order(references: Mapping[str, frozenset[str]]) -> list[str]:
    """The tables in an order in which each comes behind those that it refers to.

    Args:
        references: maps each table to those that its foreign keys name, in lower case. A reference to itself does not count.

    Raises:
        ArgumentError: tables refer to one another.
    """
    waiting = {name: {other for other in others if other != name.lower()} for name, others in references.items()}
    order: list[str] = []
    while waiting:
        left = {name.lower() for name in waiting}
        ready = sorted(name for name, others in waiting.items() if not others & left)
        if not ready:
            raise ArgumentError(f"tables {', '.join(sorted(waiting))} refer to one another: export the database as a SQLite file")
        order += ready
        for name in ready:
            del waiting[name]
    return order


def trigger_for_psql(sql: str) -> str:
    r"""The text of a trigger with ``\;`` for each semicolon in it. psql would take them for the ends of statements otherwise."""
    out, done = "", 0
    for token in sqlite_tokens(sql):
        if token.text == ";":
            out += sql[done : token.start] + "\\;"
            done = token.end
    return out + sql[done:]
