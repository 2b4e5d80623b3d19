"""Declared types of columns: which kind of values each stands for, with its length or precision. Pure.

SQLite keeps a column's declared type as text and lets any column hold any value. The rules here give that text one meaning, for the
clients that are shown the column and for the leader that stores into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class Kind(Enum):
    """The kinds of values that a declared type can stand for."""

    ANY = "any"
    """No type, or a name that is unknown here: every value is accepted, and shown as text."""
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
    """What a declared type means."""

    kind: Kind
    length: int | None = None
    """The most characters of a text; None without a limit."""
    precision: int | None = None
    """The most digits of a numeric in all, `scale` of them behind the point; None without a limit."""
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
    """The meaning of a declared type, `Kind.ANY` where it has none."""
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
