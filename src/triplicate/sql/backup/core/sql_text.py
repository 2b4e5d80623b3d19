"""A database as SQL text that psql loads: constants, statements, and the order of tables. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triplicate.errors import ArgumentError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote, sqlite_tokens

ROWS_OF_A_STATEMENT = 500
STATEMENT_CHARACTERS = 256 * 1024
"""An INSERT ends with the row that reaches one of these."""
BEGIN_MARK, END_MARK = "-- triplicate: ", "-- triplicate: end of "
"""Before the title in the first and in the last line of a text."""
MARKED_BYTES = 4096
"""Of the begin and the end of a text, as the functions below take them."""
_SQLITE_DUMP = re.compile(rb"\s*PRAGMA\s+foreign_keys\s*=\s*OFF\s*;\s*BEGIN\s+TRANSACTION\s*;", re.IGNORECASE)
_SMALLEST = -(2**63)
_REAL = ("REAL", "FLOA", "DOUB")
"""Parts of the declared types whose columns store every number as a fraction."""
_READ_OTHERWISE = re.compile(r"[;'\"\\$`\[:]")


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


def _cast(value: float) -> str:
    """A whole number with the type of a fraction. Its digits alone would be stored as an integer."""
    return f"CAST({value!r} AS double precision)"


def inserts(table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """INSERT statements with the rows of a table.

    Args:
        types: the declared type of each column.

    Raises:
        ArgumentError: as `constant`.
    """
    places = [f"column {column!r} of table {table!r}" for column in columns]
    converts = [any(word in declared.upper() for word in _REAL) for declared in types]
    head = f"INSERT INTO {quote(table)} ({', '.join(map(quote, columns))}) VALUES\n"
    lines: list[str] = []
    size = 0
    for row in rows:
        values = [
            _cast(value) if not is_real and type(value) is float and value.is_integer() else constant(value, place)
            for place, is_real, value in zip(places, converts, row, strict=True)
        ]
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


def definition_for_psql(sql: str) -> str:
    r"""A definition as psql and PostgreSQL's rules read it: ``\;`` for each semicolon in it, ``"name"`` for ```name``` and ``[name]``.

    psql would take a semicolon for the end of a statement, and a quote in a name or a comment for the begin of a text. Comments with such
    characters are left out.
    """
    out: list[str] = []
    done = 0
    for token in sqlite_tokens(sql):
        out.append(_space(sql[done : token.start]))
        if token.kind == "quoted" and token.text[0] != '"':
            out.append(quote(token.name or ""))
        else:
            out.append("\\;" if token.text == ";" else token.text)
        done = token.end
    return "".join(out)


def _space(gap: str) -> str:
    """The space between two tokens, without comments that psql would read otherwise."""
    has_comment = "--" in gap or "/*" in gap
    return " " if has_comment and (_READ_OTHERWISE.search(gap) or gap.count("/*") > 1) else gap


def begins_sqlite_dump(begin: bytes) -> bool:
    """Whether a text begins as every ``.dump`` of the sqlite3 shell does."""
    return _SQLITE_DUMP.match(begin) is not None


def is_cut_off(begin: bytes, end: bytes) -> bool:
    """Whether a text begins as an export of ours, and does not end as one. Other texts have no mark at their ends."""
    if not begin.startswith(BEGIN_MARK.encode()):
        return False
    title = begin.partition(b"\n")[0].removeprefix(BEGIN_MARK.encode())
    return not end.endswith(b"\n" + END_MARK.encode() + title + b"\n")
