"""PostgreSQL's constructs that SQLite reads as something else: their refusal has their names. Pure.

SQLite takes ``ROLLUP (a)`` for the call of a function, and the operator ``?`` of jsonb for a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from triplicate.errors import SqlError

MISSING = re.compile(r"[?@]|\b(?:rollup|cube|grouping)\b", re.IGNORECASE)
"""Texts without a match have none of these constructs; long ones need not be examined token by token."""
_NO_OPERANDS = {
    "SELECT", "FROM", "WHERE", "BY", "HAVING", "LIMIT", "OFFSET", "FETCH", "FIRST", "NEXT", "ON", "USING", "RETURNING", "VALUES", "SET",
    "WHEN", "THEN", "ELSE", "CASE", "AND", "OR", "NOT", "IN", "IS", "AS", "BETWEEN", "LIKE", "ILIKE", "SIMILAR", "GLOB", "REGEXP",
    "MATCH", "ESCAPE", "DISTINCT", "ALL", "TO", "DEFAULT", "PRECEDING", "FOLLOWING", "ROWS", "RANGE", "GROUPS", "OF", "POSITION",
    "TRANSACTION", "TIME", "TIMESTAMP", "VALUE", "INTO",
}  # fmt: skip
"""Words behind which a ``?`` is a parameter."""


class _Token(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def upper(self) -> str: ...


def refuse_missing(tokens: Sequence[_Token]) -> None:
    """Raises SqlError 0A000 for the first such construct among the tokens of a statement."""
    for index, token in enumerate(tokens):
        after = tokens[index + 1].upper if index + 1 < len(tokens) else ""
        if token.upper in ("ROLLUP", "CUBE") and after == "(" and index and tokens[index - 1].upper in ("BY", ",", "DISTINCT", "ALL"):
            raise _missing(token.upper, "Join the groupings with UNION ALL.")
        if token.upper == "GROUPING" and after in ("SETS", "("):
            raise _missing("GROUPING SETS" if after == "SETS" else "GROUPING", "Join the groupings with UNION ALL.")
        if token.kind == "parameter" and token.text == "?" and 0 < index < len(tokens) - 1 and _is_operator(tokens, index):
            name = f"?{after}" if after in ("|", "&") else "?"
            raise _missing(f"operator {name}", "Write value -> 'key' IS NOT NULL, for each key.")
        if token.upper == "@" and index + 1 < len(tokens) and tokens[index + 1].text in ("@", "?"):
            raise _missing(f"operator @{tokens[index + 1].text}", "Use the functions of SQLite, such as json_extract.")


def _is_operator(tokens: Sequence[_Token], index: int) -> bool:
    before, after = tokens[index - 1], tokens[index + 1]
    has_left = before.text in (")", "]") or before.kind in ("string", "number", "quoted", "parameter")
    has_right = after.text in ("(", "|", "&") or after.kind in ("string", "number", "quoted", "parameter") or after.upper == "ARRAY"
    return (has_left or (before.kind == "word" and before.upper not in _NO_OPERANDS)) and has_right


def _missing(subject: str, hint: str) -> SqlError:
    return SqlError("0A000", f"{subject} is not available", hint=hint)
