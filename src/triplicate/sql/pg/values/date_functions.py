"""Arithmetic of stored dates and timestamps. Pure.

Source: PostgreSQL 15 documentation, "Date/Time Functions and Operators".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import value_of_decimal
from triplicate.sql.pg.values.datetimes import read_moment

_NAIVE_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)


def _read(value: Any, oid: Any) -> dt.datetime:
    """Parse a stored date, time or timestamp. A time is on the first day of 1970. Raises SqlError 22007."""
    if not isinstance(value, str):
        raise SqlError("22007", f"{value!r} is not a date, a time or a timestamp")
    if oid == types.TIME:
        return dt.datetime.combine(_NAIVE_EPOCH.date(), dt.time.fromisoformat(read_moment(value, types.TIME)))
    read = read_moment(value, types.TIMESTAMPTZ if oid == types.TIMESTAMPTZ else types.TIMESTAMP).removesuffix("+00:00")
    return dt.datetime.fromisoformat(read)


def _seconds(moment: dt.datetime) -> Decimal:
    return moment.second + Decimal(moment.microsecond) / 1_000_000


def _epoch(moment: dt.datetime) -> Decimal:
    return Decimal((moment - _NAIVE_EPOCH) // dt.timedelta(microseconds=1)) / 1_000_000


_DAY_PARTS: dict[str, Callable[[dt.datetime], int | Decimal]] = {
    "year": lambda m: m.year,
    "month": lambda m: m.month,
    "day": lambda m: m.day,
    "quarter": lambda m: (m.month + 2) // 3,
    "week": lambda m: m.isocalendar().week,
    "isoyear": lambda m: m.isocalendar().year,
    "dow": lambda m: m.isoweekday() % 7,
    "isodow": lambda m: m.isoweekday(),
    "doy": lambda m: m.timetuple().tm_yday,
    "decade": lambda m: m.year // 10,
    "century": lambda m: (m.year + 99) // 100,
    "millennium": lambda m: (m.year + 999) // 1000,
}
_NAMES = {
    name: unit
    for unit, names in {
        "microseconds": "microsecon us usec usecond useconds usecs",
        "milliseconds": "millisecon ms msec msecond mseconds msecs",
        "second": "s sec seconds secs",
        "minute": "m min mins minutes",
        "hour": "h hours hr hrs",
        "day": "d days",
        "week": "w weeks",
        "month": "mon mons months",
        "quarter": "qtr",
        "year": "y years yr yrs",
        "decade": "dec decades decs",
        "century": "c cent centuries",
        "millennium": "mil millennia mils",
    }.items()
    for name in names.split()
}
"""Maps PostgreSQL's other names of a unit to it. As there, ten characters of a name count."""
_NAME_LENGTH = 10


def _unit(field: Any) -> str:
    name = str(field).lower()
    return _NAMES.get(name[:_NAME_LENGTH], "millennium" if name.startswith("millennium") else name)


_CLOCK_PARTS: dict[str, Callable[[dt.datetime], int | Decimal]] = {
    "hour": lambda m: m.hour,
    "minute": lambda m: m.minute,
    "second": _seconds,
    "milliseconds": lambda m: _seconds(m) * 1000,
    "microseconds": lambda m: _seconds(m) * 1_000_000,
    "epoch": _epoch,
}


def date_part(field: Any, value: Any, oid: Any) -> Value:
    """EXTRACT(field FROM value). Raises SqlError 22023 for an unknown field, 0A000 for one that the type does not have, 22007."""
    name = _unit(field)
    parts = {**({} if oid == types.TIME else _DAY_PARTS), **_CLOCK_PARTS}
    if oid == types.DATE and name in _CLOCK_PARTS and name != "epoch":
        raise SqlError("0A000", f'unit "{name}" not supported for type date')
    part = parts.get(name)
    if part is None:
        is_field = name in _DAY_PARTS or name in _CLOCK_PARTS or name in ("timezone", "timezone_hour", "timezone_minute", "julian")
        raise SqlError("0A000" if is_field else "22023", f'unit "{name}" is not available for this type')
    if oid == types.TIME and value == "24:00:00":
        return {"hour": 24, "epoch": 86_400}.get(name, 0)
    number = part(_read(value, oid))
    return value_of_decimal(Decimal(number))


def date_trunc(field: Any, value: Any, oid: Any) -> Value:
    """date_trunc(): a timestamp with all smaller fields at their first values. Raises SqlError 22023, 22008 or 0A000."""
    moment = _read(value, oid)
    name = _unit(field)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    cut: dict[str, Callable[[], dt.datetime]] = {
        "microseconds": lambda: moment,
        "milliseconds": lambda: moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "second": lambda: moment.replace(microsecond=0),
        "minute": lambda: moment.replace(second=0, microsecond=0),
        "hour": lambda: moment.replace(minute=0, second=0, microsecond=0),
        "day": lambda: day,
        "week": lambda: day - dt.timedelta(days=day.isoweekday() - 1),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "year": lambda: day.replace(month=1, day=1),
        "decade": lambda: day.replace(year=day.year // 10 * 10, month=1, day=1),
        "century": lambda: day.replace(year=(day.year - 1) // 100 * 100 + 1, month=1, day=1),
        "millennium": lambda: day.replace(year=(day.year - 1) // 1000 * 1000 + 1, month=1, day=1),
    }
    if name not in cut:
        raise SqlError("22023", f'unit "{name}" not recognized for type timestamp')
    if oid == types.TIME:
        raise SqlError("0A000", "date_trunc() of a time is not available")
    try:
        found = cut[name]().isoformat(" ")
    except (ValueError, OverflowError):
        raise SqlError("22008", "timestamp out of range: years before 1 are not supported") from None
    return found if oid == types.TIMESTAMP else found + "+00:00"


def difference(left: Any, right: Any) -> Value:
    """The number of days between two dates; with a number of days as one argument, the date at that distance. Raises SqlError 22008."""
    days = left if isinstance(left, int) else right if isinstance(right, int) else None
    try:
        if days is not None:
            date = right if isinstance(left, int) else left
            return (dt.date.fromisoformat(read_moment(str(date), types.DATE)) + dt.timedelta(days=days)).isoformat()
        return (dt.date.fromisoformat(read_moment(str(left), types.DATE)) - dt.date.fromisoformat(read_moment(str(right), types.DATE))).days
    except OverflowError:
        raise SqlError("22008", "date out of range") from None


def shifted(seconds: float) -> Value:
    """Seconds since 1970 as a stored timestamp with time zone. Raises SqlError 22008."""
    try:
        return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)).isoformat(" ")
    except (OverflowError, ValueError):
        raise SqlError("22008", f"timestamp out of range: {seconds:g}") from None
