"""The grammar of EXPLAIN. Pure. Source: PostgreSQL 15 documentation, "EXPLAIN"."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, statement_of
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor, folded

_BOOLEANS = ("analyze", "verbose", "costs", "settings", "generic_plan", "buffers", "wal", "timing", "summary")
_TRUE, _FALSE = ("TRUE", "ON", "1"), ("FALSE", "OFF", "0")
_EXPLAINED = ("SELECT", "VALUES", "WITH", "INSERT", "UPDATE", "DELETE", "(")


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """EXPLAIN of a statement."""

    statement: Statement
    analyze: bool = False
    """Whether the statement is run."""
    is_json: bool = False


def parse_explain(statement: Statement) -> ExplainStatement | None:
    """Parse EXPLAIN. None for ``EXPLAIN QUERY PLAN``, which has SQLite's answer.

    Raises:
        SqlError: 42601 for a syntax error or an unknown option, 22023 for the value of one, 0A000 for a format or statement that cannot be
            shown.
    """
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    cursor.expect("EXPLAIN")
    if cursor.accept("QUERY", "PLAN"):
        return None
    options: dict[str, str] = {}
    try:
        if cursor.token.upper == "(" and cursor.ahead().upper not in ("SELECT", "VALUES", "WITH", "("):
            options = _options(cursor)
        else:
            for name in ("ANALYZE", "VERBOSE"):
                if cursor.accept(name):
                    options[name.lower()] = "TRUE"
        if cursor.token.upper not in _EXPLAINED:
            raise cursor.not_understood()
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None
    shown = options.pop("format", "TEXT").upper()
    if shown not in ("TEXT", "JSON"):
        known = shown in ("XML", "YAML")
        raise SqlError(
            "0A000" if known else "22023",
            f"{shown} is not available as the format of EXPLAIN; use TEXT or JSON"
            if known
            else f'unrecognized value for EXPLAIN option "format": "{shown.lower()}"',
        )
    return ExplainStatement(statement_of(statement.sql[cursor.token.start :]), options.get("analyze") == "TRUE", shown == "JSON")


def _options(cursor: TokenCursor) -> dict[str, str]:
    """Maps the name of each option to its value; TRUE or FALSE of a boolean one."""
    found: dict[str, str] = {}
    cursor.expect("(")
    while True:
        name = folded(cursor.identifier())
        value = "TRUE" if cursor.token.upper in (",", ")") else _value(cursor)
        if name in _BOOLEANS:
            if value.upper() not in (*_TRUE, *_FALSE):
                raise SqlError("42601", f"{name} requires a Boolean value")
            found[name] = "TRUE" if value.upper() in _TRUE else "FALSE"
        elif name == "format":
            found[name] = value
        else:
            raise SqlError("42601", f'unrecognized EXPLAIN option "{name}"')
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _value(cursor: TokenCursor) -> str:
    token = cursor.advance()
    if token.kind == "string":
        return token.string()
    if token.kind in ("word", "quoted", "number"):
        return token.text
    raise NotUnderstood(token)
