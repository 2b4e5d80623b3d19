"""Dates and times: the forms that PostgreSQL reads, the one that is stored, and the one that it prints.

Source: PostgreSQL 15 documentation, "Date/Time Types"; the forms with a zone behind a date or time are what pgjdbc sends.
"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import SqlError
from triplicate.sql.core.datetime_text import (
    date_of_days,
    datetime_of_microseconds,
    days_of,
    is_stored_datetime,
    microseconds_of,
    shown_datetime,
    stored_datetime,
)
from triplicate.sql.core.declared_types import Kind

D, T, TS, TZ = Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ


@pytest.mark.parametrize(
    ("kind", "text", "stored", "shown"),
    [
        (D, "1970-01-01 +00", "1970-01-01", "1970-01-01"),
        (D, "2020-1-5", "2020-01-05", "2020-01-05"),
        (D, "20200105", "2020-01-05", "2020-01-05"),
        (D, "2020/1/5", "2020-01-05", "2020-01-05"),
        (D, "2020-01-05 23:59:59-05", "2020-01-05", "2020-01-05"),
        (D, "2020-01-05T10:00:00Z", "2020-01-05", "2020-01-05"),
        (D, "epoch", "1970-01-01", "1970-01-01"),
        (D, "2020-01-05 AD", "2020-01-05", "2020-01-05"),
        (T, "4:05", "04:05:00", "04:05:00"),
        (T, "04:05:06.5", "04:05:06.500000", "04:05:06.5"),
        (T, "04:05:06+02", "04:05:06", "04:05:06"),
        (T, "04:05:06.789+02:30", "04:05:06.789000", "04:05:06.789"),
        (T, "24:00:00", "24:00:00", "24:00:00"),
        (T, "allballs", "00:00:00", "00:00:00"),
        (T, "2020-01-05 04:05:06", "04:05:06", "04:05:06"),
        (TS, "2020-01-05", "2020-01-05 00:00:00", "2020-01-05 00:00:00"),
        (TS, "2020-01-05T04:05:06.120Z", "2020-01-05 04:05:06.120000", "2020-01-05 04:05:06.12"),
        (TS, "2020-01-05 04:05:06.0000005", "2020-01-05 04:05:06", "2020-01-05 04:05:06"),
        (TS, "2020-01-05 04:05:06.9999995", "2020-01-05 04:05:07", "2020-01-05 04:05:07"),
        (TS, "2020-01-05 24:00:00", "2020-01-06 00:00:00", "2020-01-06 00:00:00"),
        (TS, "20200105 04:05:06", "2020-01-05 04:05:06", "2020-01-05 04:05:06"),
        (TS, "2020-01-05 04:05:06+02", "2020-01-05 04:05:06", "2020-01-05 04:05:06"),
        (TZ, "2020-01-05 04:05:06", "2020-01-05 04:05:06+00:00", "2020-01-05 04:05:06+00"),
        (TZ, "2020-01-05 04:05:06+02", "2020-01-05 02:05:06+00:00", "2020-01-05 02:05:06+00"),
        (TZ, "2020-01-05 04:05:06 +02:30", "2020-01-05 01:35:06+00:00", "2020-01-05 01:35:06+00"),
        (TZ, "2020-01-05 04:05:06-0330", "2020-01-05 07:35:06+00:00", "2020-01-05 07:35:06+00"),
        (TZ, "2020-01-05 04:05:06+05:30:15", "2020-01-04 22:34:51+00:00", "2020-01-04 22:34:51+00"),
        (TZ, "2020-01-05 04:05:06.5Z", "2020-01-05 04:05:06.500000+00:00", "2020-01-05 04:05:06.5+00"),
        (TZ, "2020-01-05 04:05:06 UTC", "2020-01-05 04:05:06+00:00", "2020-01-05 04:05:06+00"),
        (TZ, "2020-01-05+02", "2020-01-04 22:00:00+00:00", "2020-01-04 22:00:00+00"),
        (TZ, "epoch", "1970-01-01 00:00:00+00:00", "1970-01-01 00:00:00+00"),
    ],
)
def test_forms_of_postgresql_become_the_stored_one(kind: Kind, text: str, stored: str, shown: str) -> None:
    assert stored_datetime(text, kind) == stored
    assert is_stored_datetime(stored, kind)
    assert shown_datetime(stored, kind) == shown


@pytest.mark.parametrize(
    ("kind", "text", "sqlstate"),
    [
        (D, "", "22007"),
        (D, "soon", "22007"),
        (D, "04:05:06", "22007"),
        (D, "January 8, 1999", "22007"),
        (D, "2020-02-30", "22008"),
        (D, "2020-13-01", "22008"),
        (D, "10000-01-01", "22008"),
        (D, "0000-01-01", "22008"),
        (D, "0044-03-15 BC", "0A000"),
        (D, "infinity", "0A000"),
        (TS, "-infinity", "0A000"),
        (TS, "now", "0A000"),
        (D, "today", "0A000"),
        (TZ, "tomorrow", "0A000"),
        (T, "25:00", "22008"),
        (T, "04:60", "22008"),
        (T, "24:00:01", "22008"),
        (T, "epoch", "22007"),
        (TS, "2020-01-05 04:05:60", "22008"),
        (TS, "2020-01-05 04:05:06 PST", "0A000"),
        (TZ, "2020-01-05 04:05:06 Europe/Berlin", "0A000"),
        (TZ, "2020-01-05 04:05:06+16", "22008"),
        (TZ, "0001-01-01 00:00:00+01", "22008"),
        (TZ, "9999-12-31 23:59:59-01", "22008"),
        (TS, "2020-01-0504:05", "22007"),
    ],
)
def test_what_cannot_be_stored_is_refused(kind: Kind, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        stored_datetime(text, kind)
    assert caught.value.sqlstate == sqlstate


@given(moment=st.datetimes(), kind=st.sampled_from([D, T, TS, TZ]))
def test_stored_forms_are_fixed_points_and_go_through_the_binary_form(moment: dt.datetime, kind: Kind) -> None:
    stored = stored_datetime(moment.isoformat(" "), kind)
    assert stored_datetime(stored, kind) == stored
    assert stored_datetime(shown_datetime(stored, kind), kind) == stored
    if kind is D:
        assert date_of_days(days_of(stored)) == stored
    else:
        assert datetime_of_microseconds(microseconds_of(stored, kind), kind) == stored


@given(one=st.datetimes(), other=st.datetimes(), kind=st.sampled_from([D, TS, TZ]))
def test_stored_texts_compare_as_moments_do(one: dt.datetime, other: dt.datetime, kind: Kind) -> None:
    first, second = (stored_datetime(moment.isoformat(" "), kind) for moment in (one, other))
    left, right = (one.date(), other.date()) if kind is D else (one, other)
    assert (first < second) == (left < right)


@pytest.mark.parametrize(("count", "kind"), [(2**63 - 1, TS), (-(2**63), TZ)])
def test_infinity_in_binary_is_refused(count: int, kind: Kind) -> None:
    with pytest.raises(SqlError, match="infinity"):
        datetime_of_microseconds(count, kind)


@pytest.mark.parametrize("count", [2**31 - 1, -(2**31)])
def test_an_infinite_date_in_binary_is_refused(count: int) -> None:
    with pytest.raises(SqlError, match="infinity"):
        date_of_days(count)


def test_a_moment_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(SqlError, match="out of range"):
        datetime_of_microseconds(2**62, TS)
    with pytest.raises(SqlError, match="out of range"):
        date_of_days(10**8)


def test_midnight_at_the_end_of_the_day_has_its_own_binary_form() -> None:
    assert microseconds_of("24:00:00", T) == 86_400_000_000
    assert datetime_of_microseconds(86_400_000_000, T) == "24:00:00"


@pytest.mark.parametrize(
    "text", ["x" * 200 + "/y", "x" * 10_000_000, "2024-01-01" + " " * 10_000_000 + "x"], ids=["slash", "letters", "blanks"]
)
def test_a_long_text_is_refused_unread(text: str) -> None:
    """The patterns for hints took time in proportion to the square of its length, and held the interpreter."""
    with pytest.raises(SqlError) as refused:
        stored_datetime(text, Kind.DATE)
    assert refused.value.sqlstate == "22007"
