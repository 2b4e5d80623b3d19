"""Simple queries that differ only in the integers with which they compare columns share one plan. Pure.

A client of the simple protocol writes its values into the text, so each query has a text of its own, whose planning takes ten times as
long as its execution. Such a query is planned once with parameters of type integer, which PostgreSQL also gives to these constants.

Only integers of at most 9 digits that are compared with a column after WHERE become parameters. A constant elsewhere can determine more
than a value: a position in ORDER BY, the name or type of a column, the scale of a numeric. All other queries are left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_LONGEST = 1000
"""Characters; the pattern takes a few microseconds for a query of this length."""
_NAME = "[a-z_][a-z0-9_]*"
_COLUMN = rf"{_NAME}(?:\.{_NAME})?"
_COMPARISON = rf"{_COLUMN}\s*(?:=|<>|<=|>=|<|>)\s*(?:0|[1-9][0-9]{{0,8}})(?=[\s;]|\Z)"
_ORDER = rf"\s+order\s+by\s+{_COLUMN}(?:\s+(?:asc|desc))?(?:\s*,\s*{_COLUMN}(?:\s+(?:asc|desc))?)*"
_QUERY = re.compile(
    rf"\s*select\s[\w\s,.*()]+?\sfrom\s+{_COLUMN}(?:\s+(?:as\s+)?{_NAME})?\s+where\s+{_COMPARISON}(?:\s+and\s+{_COMPARISON})*"
    rf"(?:{_ORDER})?(?:\s+limit\s+[0-9]{{1,9}})?\s*;?\s*",
    re.ASCII | re.IGNORECASE,
)
_CONSTANT = re.compile(r"(?<=[=<>])(\s*)([0-9]+)", re.ASCII)
_DIGITS_MAX = 9
_KNOWN = 2000
"""Queries that are remembered by the texts between their constants."""


class QueryShape(NamedTuple):
    """A query with parameters in the places of its constants."""

    text: str
    constants: tuple[int, ...]


def shape_of(sql: str) -> QueryShape | None:
    """The shape of a query, or None where it keeps its constants."""
    if len(sql) > _LONGEST:
        return None
    parts = _CONSTANT.split(sql)
    if len(parts) == 1:
        return None
    constants: list[int] = []
    for digits in parts[2::3]:
        if len(digits) > _DIGITS_MAX or (digits[0] == "0" and digits != "0"):
            return None
        constants.append(int(digits))
    del parts[2::3]
    text = _text_of(tuple(parts))
    return None if text is None else QueryShape(text, tuple(constants))


@lru_cache(maxsize=_KNOWN)
def _text_of(between: tuple[str, ...]) -> str | None:
    """The query with parameters; None where its constants must stay.

    Args:
        between: the texts between the constants, each but the last followed by the white space before a constant.
    """
    *texts, last = between
    before = [text + space for text, space in zip(texts[::2], texts[1::2], strict=True)]
    if _QUERY.fullmatch("1".join((*before, last))) is None:
        return None
    return "".join([f"{text}${number}" for number, text in enumerate(before, start=1)]) + last
