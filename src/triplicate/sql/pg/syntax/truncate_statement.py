"""The grammar of TRUNCATE. Pure. Source: PostgreSQL 15 documentation, "TRUNCATE"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, quote
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor


class TruncatedTable(NamedTuple):
    """One table of TRUNCATE."""

    name: str
    target: str
    """The table in a statement: quoted, with its schema."""


@dataclass(frozen=True, slots=True)
class TruncateStatement:
    """TRUNCATE of some tables."""

    tables: tuple[TruncatedTable, ...]


def parse_truncate(statement: Statement) -> TruncateStatement:
    """Parse a TRUNCATE statement.

    Raises:
        SqlError: 42601 for a syntax error, 0A000 for RESTART IDENTITY and CASCADE.
    """
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    try:
        return _parsed(cursor)
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None


def _parsed(cursor: TokenCursor) -> TruncateStatement:
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    tables = [_table(cursor)]
    while cursor.accept(","):
        tables.append(_table(cursor))
    if cursor.accept("RESTART", "IDENTITY"):
        raise SqlError("0A000", "TRUNCATE … RESTART IDENTITY is not supported", hint="The numbers go on after the last one.")
    cursor.accept("CONTINUE", "IDENTITY")
    if cursor.accept("CASCADE"):
        raise SqlError("0A000", "TRUNCATE … CASCADE is not supported", hint="Name all tables in one TRUNCATE.")
    cursor.accept("RESTRICT")
    cursor.accept(";")
    if cursor.token.kind != "end":
        raise cursor.not_understood()
    return TruncateStatement(tuple(tables))


def _table(cursor: TokenCursor) -> TruncatedTable:
    cursor.accept("ONLY")
    name = cursor.dotted()
    cursor.accept("*")
    return TruncatedTable(name.last, ".".join(map(quote, name.parts)))
