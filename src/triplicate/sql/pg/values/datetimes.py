"""Converts stored dates and times from one type to another. Pure."""

from __future__ import annotations

import datetime as dt

from triplicate.sql.core.datetime_text import datetime_of_microseconds, microseconds_of, shown_datetime, stored_datetime
from triplicate.sql.core.declared_types import Kind
from triplicate.sql.pg.values import types

_KINDS = {
    types.DATE: Kind.DATE,
    types.TIME: Kind.TIME,
    types.TIMESTAMP: Kind.TIMESTAMP,
    types.TIMESTAMPTZ: Kind.TIMESTAMPTZ,
}

NOW = {
    types.TIMESTAMPTZ: "(replace(strftime('%Y-%m-%d %H:%M:%f000','now'),'.000000','') || '+00:00')",
    types.TIMESTAMP: "(replace(strftime('%Y-%m-%d %H:%M:%f000','now'),'.000000',''))",
    types.DATE: "(strftime('%Y-%m-%d','now'))",
    types.TIME: "(replace(strftime('%H:%M:%f000','now'),'.000000',''))",
}
"""SQLite's expression for the current time as a column of each type stores it, in UTC and to the millisecond. A fraction of zero is left
out.
"""

NOW_IN_CHECK = {
    types.TIMESTAMPTZ: "(CURRENT_TIMESTAMP || '+00:00')",
    types.TIMESTAMP: "CURRENT_TIMESTAMP",
    types.DATE: "CURRENT_DATE",
    types.TIME: "CURRENT_TIME",
}
"""The same to the second, in the only words for the time that SQLite accepts in a CHECK."""


def read_moment(text: str, oid: int) -> str:
    """The stored form of a date, time or timestamp, from its text or from another of these types.

    Raises:
        SqlError: 22007 for malformed text, 22008 for a field out of range, 0A000 for a value that cannot be stored.
    """
    return stored_datetime(text, _KINDS[oid])


def shown(stored: str, oid: int) -> str:
    """A stored date, time or timestamp as PostgreSQL prints it."""
    return shown_datetime(stored, _KINDS[oid])


def round_moment(stored: str, oid: int, digits: int) -> str:
    """A stored time or timestamp, rounded to `digits` digits of a second."""
    step = 10 ** (6 - min(max(digits, 0), 6))
    if oid == types.DATE:
        return stored
    # PostgreSQL counts from this epoch, and rounds halves away from it.
    micros = microseconds_of(stored, _KINDS[oid])
    rounded = (abs(micros) + step // 2) // step * step
    return datetime_of_microseconds(rounded if micros >= 0 else -rounded, _KINDS[oid])


def text_of_micros(micros: int, oid: int) -> str:
    """The stored form of a time in µs since 1970, as a value of the type."""
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    if oid == types.DATE:
        return moment.date().isoformat()
    if oid == types.TIME:
        return moment.time().isoformat()
    return moment.isoformat(" ") if oid == types.TIMESTAMPTZ else moment.replace(tzinfo=None).isoformat(" ")
