"""The clause AS OF at the end of a query, which names the time that the query reads. Pure.

``AS OF POSITION 1200``, ``AS OF TIME '2026-01-31 11:59'``, ``AS OF TRANSACTION 1099511629824``; TIMESTAMP and SYSTEM TIME stand for TIME.
Neither PostgreSQL nor SQLite has a statement in which these words follow one another: OF as an alias is followed by no further name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, Token

_OF = re.compile(r"\bof\b", re.IGNORECASE)
_KINDS = {"POSITION": "position", "TIME": "time", "TIMESTAMP": "time", "TRANSACTION": "transaction"}
_QUERIES = ("SELECT", "VALUES", "WITH", "(")
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_PARAMETERS_MAX = 32_766


@dataclass(frozen=True, slots=True)
class AsOfClause:
    """The point of a query: a constant, or a parameter."""

    kind: str
    """As `parse_target` has it: ``position``, ``time`` or ``transaction``."""
    constant: str = ""
    parameter: int = 0
    """The number of the parameter; 0 for a constant."""

    def point(self, parameters: Sequence[object]) -> str:
        """The point as `parse_target` reads it.

        Raises:
            SqlError: 22004, the parameter is NULL.
        """
        if not self.parameter:
            return f"{self.kind} {self.constant}"
        value = parameters[self.parameter - 1]
        if value is None:
            raise SqlError("22004", f"the {self.kind} of AS OF must not be null")
        return f"{self.kind} {value}"


@dataclass(frozen=True, slots=True)
class AsOfQuery:
    """A query that reads the database as it was."""

    statement: Statement
    """Without the clause."""
    clause: AsOfClause
    planned_for: int | None = None
    """The version of the schema of then for which the query is planned; None while its point is a parameter."""


def parse_as_of(statement: Statement) -> AsOfQuery | None:
    """Take the clause from the end of a query. None for a statement without one, and for EXPLAIN and COPY, which hold a query.

    Raises:
        SqlError: 42601, the clause is incomplete, or not the last of its statement; 0A000, the statement is no query.
    """
    if _OF.search(statement.sql) is None:
        return None
    tokens = statement.tokens
    at = next((index for index in range(1, len(tokens) - 2) if _begins(tokens, index)), None)
    if at is None or _holds_query(tokens):
        return None
    _check_is_query(tokens, tokens[at])
    words = 2 if tokens[at + 2].upper != "SYSTEM" else 3
    value = tokens[at + words + 1 :]
    if len(value) != 1 or value[0].kind not in ("string", "number", "parameter"):
        raise SqlError(
            "42601",
            "AS OF takes one constant or parameter, and ends the whole query",
            hint="Write SELECT … AS OF POSITION 1200. The whole query is read as of then; no part of it has a time of its own.",
            position=tokens[at].start + 1,
        )
    kind = _KINDS[tokens[at + words].upper]
    end = tokens[at - 1].end
    return AsOfQuery(Statement(statement.sql[:end], tokens[:at]), _clause(kind, value[0]))


def _begins(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].upper != "AS" or tokens[index + 1].upper != "OF":
        return False
    kind = tokens[index + 2].upper
    return kind in _KINDS or (kind == "SYSTEM" and index + 3 < len(tokens) and tokens[index + 3].upper == "TIME")


def _holds_query(tokens: Sequence[Token]) -> bool:
    """Whether it is a statement whose query is parsed by itself."""
    first, *others = [token.upper for token in tokens[:3]]
    return first == "COPY" or (first == "EXPLAIN" and others != ["QUERY", "PLAN"])


def _check_is_query(tokens: Sequence[Token], clause: Token) -> None:
    first = tokens[0].upper
    word, depth = first, 0
    if first == "WITH":
        for token in tokens:
            depth += (token.upper == "(") - (token.upper == ")")
            if not depth and token.upper in _CHANGES:
                word = token.upper
    if word not in _QUERIES:
        raise SqlError(
            "0A000",
            f"AS OF is not available in {word}",
            hint="It ends a query by itself: read the rows first, or SET triplicate.as_of.",
            position=clause.start + 1,
        )


def _clause(kind: str, value: Token) -> AsOfClause:
    if value.kind == "parameter":
        digits = value.text[1:]
        if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:7]) <= _PARAMETERS_MAX:
            raise SqlError("42601", "the parameter of AS OF has a number", hint="Write $1.", position=value.start + 1)
        return AsOfClause(kind, parameter=int(digits))
    return AsOfClause(kind, value.string() if value.kind == "string" else value.text)
