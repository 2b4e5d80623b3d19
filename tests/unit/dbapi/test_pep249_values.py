from __future__ import annotations

import datetime

import pytest

from triplicate import dbapi


def test_the_constructors_of_pep_249_make_values_of_python() -> None:
    assert dbapi.Date(2026, 2, 3) == datetime.date(2026, 2, 3)
    assert dbapi.Time(4, 5, 6) == datetime.time(4, 5, 6)
    assert dbapi.Timestamp(2026, 2, 3, 4, 5, 6).isoformat() == "2026-02-03T04:05:06"
    assert bytes(dbapi.Binary(b"x")) == b"x"
    ticks = 1_000_000_000
    at = datetime.datetime.fromtimestamp(ticks)  # noqa: DTZ006  PEP 249 means local time
    assert (dbapi.DateFromTicks(ticks), dbapi.TimeFromTicks(ticks), dbapi.TimestampFromTicks(ticks)) == (at.date(), at.time(), at)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [("VARCHAR(3)", dbapi.STRING), ("blob", dbapi.BINARY), ("bigint", dbapi.NUMBER), ("timestamptz", dbapi.DATETIME)],
)
def test_a_declared_type_equals_its_type_object(declared: str, kind: object) -> None:
    assert declared == kind
    assert [other for other in (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME) if other == declared] == [kind]
