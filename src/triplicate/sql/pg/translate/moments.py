"""Dates and times from text to the form in which they are stored. Pure.

The forms of ISO 8601 are read, with one or two digits for month, day and hour; the other forms of PostgreSQL (names of months, relative
words, years before 1 or after 9999, infinity) are refused. A moment without a zone is in UTC.
"""

from __future__ import annotations

import datetime as dt
import re

from triplicate.errors import SqlError
from triplicate.sql.pg import types

_DAY = dt.date(2000, 1, 1)
_DATE = r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})|(?P<compact>\d{8})"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d*))?)?"
_ZONE = r"\s*(?P<zone>[zZ]|UTC|utc|GMT|gmt|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)"
_MOMENT = re.compile(rf"\s*(?:{_DATE})(?:(?:\s+|[tT]\s*){_CLOCK})?(?:{_ZONE})?\s*", re.ASCII)
_TIME = re.compile(rf"\s*{_CLOCK}(?:{_ZONE})?\s*", re.ASCII)


def read_date(text: str) -> str:
    """A date as it is stored; the time of day of a timestamp is left out.

    Raises:
        SqlError: 22007 for text that is no date, 22008 for a day that the calendar does not have.
    """
    return _moment(text, "date").date().isoformat()


def read_timestamp(text: str) -> str:
    """A timestamp without a zone as it is stored; a zone in the text is passed over, as PostgreSQL does."""
    return _moment(text, "timestamp").isoformat(" ")


def read_timestamptz(text: str) -> str:
    """A timestamp with a zone as it is stored, in UTC."""
    moment = _moment(text, "timestamp with time zone")
    match = _MOMENT.fullmatch(text)
    assert match is not None, "it has been read"
    shifted = _shifted(moment, _zone(match["zone"], text), text)
    return shifted.replace(tzinfo=dt.UTC).isoformat(" ")


def _shifted(moment: dt.datetime, offset: dt.timedelta, text: str) -> dt.datetime:
    try:
        return moment - offset
    except OverflowError:
        raise _out_of_range(text) from None


def read_time(text: str) -> str:
    """A time of day as it is stored."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise SqlError("22007", f'invalid input syntax for type time: "{text[:60]}"')
    day, moment = _clock(match, text)
    if day:
        raise SqlError("22008", f'the time 24:00:00 is not available: "{text[:60]}"')
    return moment.time().isoformat()


def _moment(text: str, name: str) -> dt.datetime:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise SqlError("22007", f'invalid input syntax for type {name}: "{text[:60]}"', hint="Write year-month-day hours:minutes:seconds.")
    compact = match["compact"]
    fields = (compact[:4], compact[4:6], compact[6:]) if compact else (match["year"], match["month"], match["day"])
    days, clock = _clock(match, text)
    try:
        date = dt.date(*map(int, fields)) + dt.timedelta(days=days)
    except (ValueError, OverflowError):
        raise _out_of_range(text) from None
    return dt.datetime.combine(date, clock.time())


def _clock(match: re.Match[str], text: str) -> tuple[int, dt.datetime]:
    """Days to add, and the time of day on any date."""
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    micros = round(float(f"0.{match['fraction']}") * 1e6) if match["fraction"] else 0
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or micros)):
        raise _out_of_range(text)
    whole = dt.datetime.combine(_DAY, dt.time()) + dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
    return (whole.date() - _DAY).days, whole


def _zone(text: str | None, whole: str) -> dt.timedelta:
    if text is None or text.lower() in ("z", "utc", "gmt"):
        return dt.timedelta(0)
    digits = re.sub(r"\D", "", text)
    hours = digits if len(digits) <= 2 else digits[: len(digits) - 2 if len(digits) <= 4 else len(digits) - 4]
    rest = digits[len(hours) :]
    minutes, seconds = int(rest[:2] or 0), int(rest[2:4] or 0)
    if int(hours) > 15 or minutes > 59 or seconds > 59:
        raise SqlError("22009", f'time zone displacement out of range: "{whole[:60]}"')
    offset = dt.timedelta(hours=int(hours), minutes=minutes, seconds=seconds)
    return -offset if text[0] == "-" else offset


def _out_of_range(text: str) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text[:60]}"')


def round_moment(stored: str, oid: int, digits: int) -> str:
    """A stored time or timestamp, rounded to so many digits of a second."""
    step = 10 ** (6 - min(max(digits, 0), 6))
    if oid == types.DATE:
        return stored
    moment = dt.datetime.fromisoformat("2000-01-01 " + stored if oid == types.TIME else stored)
    micros = (moment.microsecond + step // 2) // step * step
    rounded = moment.replace(microsecond=0) + dt.timedelta(microseconds=micros)
    return rounded.time().isoformat() if oid == types.TIME else rounded.isoformat(" ")


def text_of_micros(micros: int, oid: int) -> str:
    """A moment in microseconds since 1970 as a value of the type is stored."""
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    if oid == types.DATE:
        return moment.date().isoformat()
    if oid == types.TIME:
        return moment.time().isoformat()
    return moment.isoformat(" ") if oid == types.TIMESTAMPTZ else moment.replace(tzinfo=None).isoformat(" ")
