"""Quotes names that PostgreSQL allows without quotes and SQLite does not. An example is ``index``, pandas' default column. Pure."""

from __future__ import annotations

import re

from triplicate.sql.core.lexer import Statement, statement_of

_LOWER = ("index", "transaction", "add", "alter", "drop", "commit")
_WORDS = re.compile(rf"\b(?:{'|'.join(_LOWER)})\b", re.IGNORECASE)
_QUERY = frozenset(word.upper() for word in _LOWER)
_NAMES = {
    **dict.fromkeys(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES"), _QUERY),
    "CREATE": _QUERY - {"COMMIT"},
    "ALTER": frozenset(("INDEX", "TRANSACTION")),
}
"""Maps a statement's first word to the words that are never keywords in it after its first three (``CREATE UNIQUE INDEX``)."""
_HEAD = 3


def quote_reserved(statement: Statement) -> Statement:
    """The statement with such names in quotes."""
    sql, tokens = statement.sql, statement.tokens
    names = _NAMES.get(statement.first_word, frozenset())
    if not names or _WORDS.search(sql) is None or "TRIGGER" in [token.upper for token in tokens[1:_HEAD]]:
        return statement
    pieces: list[str] = []
    at = 0
    head = _HEAD if tokens[0].upper in ("CREATE", "ALTER") else 0
    for token in tokens[head:]:
        if token.kind == "word" and token.upper in names:
            pieces += [sql[at : token.start], '"', token.text.lower(), '"']
            at = token.end
    return statement_of("".join(pieces) + sql[at:]) if pieces else statement
