"""Declared types of columns: the kind of values of each, with its length or precision. Pure.

SQLite stores a column's declared type as text, and any column can hold any value. The rules here give the text one meaning, both for
the types that clients see and for the leader's checks of values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class Kind(Enum):
    """The kinds of values of declared types."""

    ANY = "any"
    """No type, or an unknown one: every value is accepted, and shown as text."""
    BOOL = "boolean"
    INTEGER = "integer"
    FLOAT = "double precision"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "character varying"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamp with time zone"
    UUID = "uuid"
    JSON = "json"
    JSONB = "jsonb"


@dataclass(frozen=True, slots=True)
class Declared:
    """A parsed declared type."""

    kind: Kind
    length: int | None = None
    """Upper bound on the characters of a text; None for none."""
    precision: int | None = None
    """Upper bound on the digits of a numeric, of which `scale` follow the point; None for none."""
    scale: int = 0


_ANY = Declared(Kind.ANY)
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"^INTERVAL", Kind.ANY),
        (r"^BOOL", Kind.BOOL),
        (r"^TIMESTAMP ?TZ|^TIMESTAMP.*WITH TIME ZONE", Kind.TIMESTAMPTZ),
        (r"^TIMESTAMP|^DATETIME", Kind.TIMESTAMP),
        (r"^DATE$", Kind.DATE),
        (r"^TIME", Kind.TIME),
        (r"^UUID", Kind.UUID),
        (r"^JSONB", Kind.JSONB),
        (r"^JSON", Kind.JSON),
        (r"INT", Kind.INTEGER),
        (r"^(BIG|SMALL)?SERIAL", Kind.INTEGER),
        (r"^VARCHAR|^CHARACTER VARYING|^CHAR VARYING", Kind.VARCHAR),
        (r"CHAR|CLOB|TEXT", Kind.TEXT),
        (r"BLOB|BYTEA", Kind.BYTEA),
        (r"REAL|FLOA|DOUB", Kind.FLOAT),
        (r"^NUMERIC|^DECIMAL", Kind.NUMERIC),
    )
)
_ARGUMENTS = re.compile(r"\(\s*(\d{1,9})\s*(?:,\s*([+-]?\d{1,9})\s*)?\)\s*$")
_SIZED = re.compile(r"^(NATIONAL )?(VAR)?CHAR|^N(VAR)?CHAR|^VARCHAR|^BPCHAR", re.IGNORECASE)


@lru_cache(maxsize=4096)
def parse_declared(declared: str | None) -> Declared:
    """Parse a declared type; `Kind.ANY` for an unknown one."""
    if not declared:
        return _ANY
    kind = next((kind for pattern, kind in _KINDS if pattern.search(declared)), Kind.ANY)
    found = _ARGUMENTS.search(declared)
    first = int(found[1]) if found is not None else None
    if kind is Kind.NUMERIC:
        return Declared(kind, precision=first, scale=int(found[2] or 0) if found is not None else 0)
    if kind in (Kind.TEXT, Kind.VARCHAR) and _SIZED.search(declared):
        return Declared(kind, length=first)
    return Declared(kind)
