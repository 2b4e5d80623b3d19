"""The grammar of VACUUM. Pure. Source: PostgreSQL 15 documentation, "VACUUM".

Nothing is vacuumed: SQLite uses the pages of deleted rows again, and its own VACUUM renumbers rows. ANALYZE in a VACUUM is done.
"""

from __future__ import annotations

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, quote
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor

_OPTIONS = (
    "FULL", "FREEZE", "VERBOSE", "ANALYZE", "DISABLE_PAGE_SKIPPING", "SKIP_LOCKED", "INDEX_CLEANUP", "PROCESS_TOAST", "TRUNCATE",
    "PARALLEL",
)  # fmt: skip
_FALSE = ("FALSE", "OFF", "0", "NO")


def parse_vacuum(statement: Statement) -> str | None:
    """The ANALYZE for which a VACUUM asks, in SQLite's words: empty where it asks for none; None for VACUUM INTO, which is SQLite's.

    Raises:
        SqlError: 42601 for a syntax error or an unknown option, 0A000 for ANALYZE of several tables.
    """
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    try:
        return _parsed(cursor)
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None


def _parsed(cursor: TokenCursor) -> str | None:
    cursor.expect("VACUUM")
    if cursor.token.upper == "INTO":
        return None
    analyzes = _options(cursor) if cursor.accept("(") else False
    for word in ("FULL", "FREEZE", "VERBOSE", "ANALYZE"):
        analyzes |= cursor.accept(word) and word == "ANALYZE"
    tables: list[str] = []
    while cursor.token.kind in ("word", "quoted"):
        tables.append(cursor.dotted().last)
        if cursor.accept("("):
            cursor.identifier()
            while cursor.accept(","):
                cursor.identifier()
            cursor.expect(")")
        if not cursor.accept(","):
            break
    cursor.accept(";")
    if cursor.token.kind != "end":
        raise cursor.not_understood()
    if analyzes and len(tables) > 1:
        raise SqlError(
            "0A000", "VACUUM ANALYZE of several tables is not supported", hint="Write a statement for each, or name none for all."
        )
    return " ".join(["ANALYZE", *map(quote, tables)]) if analyzes else ""


def _options(cursor: TokenCursor) -> bool:
    """Parse the options in brackets; whether ANALYZE is among them."""
    analyzes = False
    while True:
        token = cursor.identifier()
        if token.upper not in _OPTIONS:
            raise SqlError("42601", f'unrecognized VACUUM option "{token.text}"', position=token.start + 1)
        is_set = True
        if cursor.token.upper not in (",", ")"):
            value = cursor.advance()
            is_set = (value.string() if value.kind == "string" else value.text).upper() not in _FALSE
        analyzes |= is_set and token.upper == "ANALYZE"
        if not cursor.accept(","):
            cursor.expect(")")
            return analyzes
