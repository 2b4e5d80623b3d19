"""Settings that programs for `sqlite3` make or read when they connect, and that are so here already."""

from __future__ import annotations

import re
from typing import NamedTuple

_PRAGMA = re.compile(r"\s*pragma\s+(?:main\.)?(\w+)\s*(?:=\s*['\"]?(\w+)['\"]?|\(\s*['\"]?(\w+)['\"]?\s*\)|)\s*;?\s*", re.IGNORECASE)


class _Settled(NamedTuple):
    values: frozenset[str]
    """Those that are so."""
    read: str
    """A statement with the value."""
    answers_change: bool = False
    """Whether SQLite answers a change with the value."""


_SETTLED = {
    # The connections on which programs read have them off, since they change nothing. Changes run with them on.
    "foreign_keys": _Settled(frozenset(("on", "1", "true", "yes")), "select 1 as foreign_keys"),
    "journal_mode": _Settled(frozenset(("wal",)), "select 'wal' as journal_mode", answers_change=True),
    "synchronous": _Settled(frozenset(("normal", "1", "full", "2")), "select 2 as synchronous"),
}


def settled(sql: str) -> str | None:
    """The statement to run in the place of a ``PRAGMA`` that reads or sets what is so; empty for no result. None for other statements."""
    found = _PRAGMA.fullmatch(sql)
    known = None if found is None else _SETTLED.get(found[1].lower())
    if found is None or known is None:
        return None
    value = found[2] or found[3]
    if value is None:
        return known.read
    if value.lower() not in known.values:
        return None
    return known.read if known.answers_change else ""
