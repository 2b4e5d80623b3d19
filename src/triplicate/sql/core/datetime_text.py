"""Dates and times as text: the forms that PostgreSQL accepts, the stored form, and the form that PostgreSQL prints. Pure.

Each date or time has one stored form, so that texts compare as times do: ``YYYY-MM-DD``, ``HH:MM:SS``, or both with a space between. A
timestamp with time zone is stored in UTC with ``+00:00`` at its end. A fraction has six digits, or is missing when it is zero.
Source: PostgreSQL 15 documentation, "Date/Time Types" and appendix B, "Date/Time Support".
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal

from triplicate.errors import SqlError
from triplicate.sql.core.declared_types import Kind

_DATE = r"(?P<year>\d{4,})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_SLASHED = _DATE.replace("-(?P<", "/(?P<").replace("year", "year2").replace("month", "month2").replace("<day", "<day2")
_JOINED = r"(?P<year3>\d{4})(?P<month3>\d\d)(?P<day3>\d\d)"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?P<fraction>\.\d*)?)?"
_ZONE = r"(?P<zone>[zZ]|UTC|utc|GMT|gmt|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)"
_MOMENT = re.compile(
    rf"(?:(?:{_DATE}|{_SLASHED}|{_JOINED})(?=$|[T\s]|[+-]\d|[zZ]))?(?:[Tt]|\s+|^)?(?:{_TIME})?\s*{_ZONE}?(?:\s+AD)?", re.ASCII
)
_SPECIAL = {"infinity", "+infinity", "-infinity", "now", "today", "tomorrow", "yesterday"}
_HINTS = {
    Kind.DATE: "write YYYY-MM-DD",
    Kind.TIME: "write HH:MM:SS, with up to six digits of a fraction",
    Kind.TIMESTAMP: "write YYYY-MM-DD HH:MM:SS",
    Kind.TIMESTAMPTZ: "write YYYY-MM-DD HH:MM:SS+00",
}
LENGTH_MAX = 100
"""A longer text is not examined: patterns may take time in proportion to the square of its length, and hold the interpreter."""
_MIDNIGHT = "24:00:00"
_DAY = dt.timedelta(days=1)


def stored_datetime(text: str, kind: Kind) -> str:
    """The stored form of a date, time or timestamp that a client has written. A timestamp with time zone whose text has no zone is in UTC.

    Raises:
        SqlError: 22007 for a text of another form, 22008 for a field out of range, 0A000 for values that cannot be stored: infinity,
            years BC and beyond 9999, names of time zones, and words for the present time.
    """
    stripped = text.strip()
    if len(stripped) > LENGTH_MAX:
        raise _malformed(stripped[:LENGTH_MAX], kind)
    lowered = stripped.lower()
    if lowered == "epoch" and kind is not Kind.TIME:
        stripped = "1970-01-01 00:00:00"
    elif lowered in _SPECIAL:
        raise SqlError("0A000", f"the {kind.value} {text!r} is not supported", hint="use CURRENT_TIMESTAMP or CURRENT_DATE")
    elif lowered == "allballs":
        stripped = "00:00:00"
    if re.search(r"\bBC$", stripped, re.IGNORECASE):
        raise SqlError("0A000", f"{kind.value} {text!r}: years before 1 are not supported")
    found = _MOMENT.fullmatch(stripped)
    if found is None or not stripped:
        raise _malformed(text, kind)
    fields = found.groupdict()
    try:
        return _stored(fields, text, kind)
    except (ValueError, OverflowError):
        raise SqlError("22008", f"date/time field value out of range: {text!r}", hint=_HINTS[kind]) from None


def _malformed(text: str, kind: Kind) -> SqlError:
    if re.search(r"[A-Za-z]+/[A-Za-z]+|\s[A-Za-z]{3,5}$", text):
        return SqlError("0A000", f"{kind.value} {text[:60]!r}: names of time zones are not supported", hint="write the offset: +02")
    return SqlError("22007", f"invalid input syntax for type {kind.value}: {text[:60]!r}", hint=_HINTS[kind])


def _stored(fields: dict[str, str | None], text: str, kind: Kind) -> str:
    date, time = _date_of(fields), _time_of(fields)
    if kind is Kind.TIME:
        if time is None:
            raise _malformed(text, kind)
        if time == _DAY:
            return _MIDNIGHT
        return (_EPOCH + time).time().isoformat()
    if date is None:
        raise _malformed(text, kind)
    if kind is Kind.DATE:
        return date.isoformat()
    moment = dt.datetime.combine(date, dt.time()) + (time or dt.timedelta())
    if kind is Kind.TIMESTAMP:
        return moment.isoformat(" ")
    return (moment - _offset_of(fields["zone"])).isoformat(" ") + "+00:00"


def _date_of(fields: dict[str, str | None]) -> dt.date | None:
    for suffix in ("", "2", "3"):
        year, month, day = fields["year" + suffix], fields["month" + suffix], fields["day" + suffix]
        if year is not None and month is not None and day is not None:
            return dt.date(int(year), int(month), int(day))
    return None


def _time_of(fields: dict[str, str | None]) -> dt.timedelta | None:
    if fields["hour"] is None or fields["minute"] is None:
        return None
    hour, minute, second = int(fields["hour"]), int(fields["minute"]), int(fields["second"] or 0)
    fraction = Decimal("0" + (fields["fraction"] or "")) if fields["fraction"] not in (None, ".") else Decimal(0)
    microsecond = int((fraction * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
    time = dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=microsecond)
    if minute > 59 or second > 59 or time > _DAY:
        raise ValueError("out of range")
    return time


def _offset_of(zone: str | None) -> dt.timedelta:
    if zone is None or zone[0] not in "+-":
        return dt.timedelta()
    digits = zone[1:].replace(":", "")
    hours, rest = (digits, "") if len(digits) < 3 else (digits[:-2], digits[-2:]) if len(digits) < 5 else (digits[:-4], digits[-4:])
    minutes, seconds = int(rest[:2] or 0), int(rest[2:] or 0)
    if int(hours) > 15 or minutes > 59 or seconds > 59:
        raise ValueError("no offset is that large")
    offset = dt.timedelta(hours=int(hours), minutes=minutes, seconds=seconds)
    return -offset if zone[0] == "-" else offset


def is_stored_datetime(text: str, kind: Kind) -> bool:
    """Whether a text is the stored form of some date or time. SQLite's CURRENT_TIMESTAMP, which has no zone, counts as one in UTC."""
    return STORED_FORMS[kind](text)


def _is_date(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        return text == _MIDNIGHT or (dt.time.fromisoformat(text).isoformat() == text and "+" not in text and "-" not in text)
    except ValueError:
        return False


def _is_timestamp(text: str) -> bool:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is None and moment.isoformat(" ") == text


def _is_timestamptz(text: str) -> bool:
    return _is_timestamp(text.removesuffix("+00:00"))


STORED_FORMS: dict[Kind, Callable[[str], bool]] = {
    Kind.DATE: _is_date,
    Kind.TIME: _is_time,
    Kind.TIMESTAMP: _is_timestamp,
    Kind.TIMESTAMPTZ: _is_timestamptz,
}
"""By kind: whether a text is the stored form."""


def shown_datetime(text: str, kind: Kind) -> str:
    """A stored text as PostgreSQL prints it: a fraction without zeros at its end, ``+00`` in UTC.

    Raises:
        SqlError: as `stored_datetime`, for a text that was stored by a release that did not check it.
    """
    stored = text if is_stored_datetime(text, kind) else stored_datetime(text, kind)
    if kind is Kind.TIMESTAMPTZ:
        return _without_zeros(stored.removesuffix("+00:00")) + "+00"
    return stored if kind is Kind.DATE else _without_zeros(stored)


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def microseconds_of(text: str, kind: Kind) -> int:
    """PostgreSQL's binary form of a time or timestamp: microseconds since midnight, or since 2000-01-01 in UTC.

    Raises:
        SqlError: as `stored_datetime`.
    """
    stored = text if is_stored_datetime(text, kind) else stored_datetime(text, kind)
    if kind is Kind.TIME:
        if stored == _MIDNIGHT:
            return _DAY // _MICROSECOND
        time = dt.time.fromisoformat(stored)
        return (dt.datetime.combine(_EPOCH.date(), time) - _EPOCH) // _MICROSECOND
    return (dt.datetime.fromisoformat(stored.removesuffix("+00:00")) - _EPOCH) // _MICROSECOND


def datetime_of_microseconds(count: int, kind: Kind) -> str:
    """The stored form of PostgreSQL's binary form.

    Raises:
        SqlError: 0A000 for infinity; 22008 beyond year 9999 or before year 1.
    """
    if kind is Kind.TIME:
        if count == _DAY // _MICROSECOND:
            return _MIDNIGHT
        if not 0 <= count < _DAY // _MICROSECOND:
            raise SqlError("22008", "time out of range")
        return (_EPOCH + count * _MICROSECOND).time().isoformat()
    if count in (2**63 - 1, -(2**63)):
        raise SqlError("0A000", f"the {kind.value} infinity is not supported")
    try:
        text = (_EPOCH + count * _MICROSECOND).isoformat(" ")
    except OverflowError:
        raise SqlError("22008", f"{kind.value} out of range: years 1 to 9999 can be stored") from None
    return text + "+00:00" if kind is Kind.TIMESTAMPTZ else text


def days_of(text: str) -> int:
    """PostgreSQL's binary form of a date: days since 2000-01-01."""
    return (dt.date.fromisoformat(stored_datetime(text, Kind.DATE)) - _EPOCH.date()).days


def date_of_days(count: int) -> str:
    """The stored form of PostgreSQL's binary form of a date; raises as `datetime_of_microseconds`."""
    if count in (2**31 - 1, -(2**31)):
        raise SqlError("0A000", "the date infinity is not supported")
    try:
        return (_EPOCH.date() + dt.timedelta(days=count)).isoformat()
    except OverflowError:
        raise SqlError("22008", "date out of range: years 1 to 9999 can be stored") from None


_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)
_MICROSECOND = dt.timedelta(microseconds=1)
