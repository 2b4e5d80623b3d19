"""Values from one of PostgreSQL's types to another, patterns and arrays."""

from __future__ import annotations

import json
import struct
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import conversions, types
from triplicate.sql.pg.values.array_parameters import decode_array
from triplicate.sql.pg.values.conversions import convert, text_of_float
from triplicate.sql.pg.values.datetimes import round_moment, text_of_micros
from triplicate.sql.pg.values.patterns import glob_of_like


@pytest.mark.parametrize(
    ("value", "source", "target", "modifiers", "expected"),
    [
        (" 12 ", None, types.INT4, (), 12),
        (2.5, types.FLOAT8, types.INT4, (), 2),
        (3.5, types.FLOAT8, types.INT4, (), 4),
        (2.5, types.NUMERIC, types.INT4, (), 3),
        (-2.5, types.NUMERIC, types.INT4, (), -3),
        (None, None, types.INT4, (), None),
        ("1e3", None, types.FLOAT8, (), 1000.0),
        ("Infinity", None, types.FLOAT8, (), float("inf")),
        (0.1, types.FLOAT8, types.FLOAT4, (), 0.1),
        (0.1 + 0.2, types.FLOAT8, types.FLOAT4, (), 0.3),
        (16777217, types.INT8, types.FLOAT4, (), 16777216.0),
        ("1e-45", types.UNKNOWN, types.FLOAT4, (), 1e-45),
        ("3.40282347e38", types.UNKNOWN, types.FLOAT4, (), 3.4028235e38),
        ("1.005", None, types.NUMERIC, (10, 2), 1.01),
        ("-1.005", None, types.NUMERIC, (10, 2), -1.01),
        ("2.50", None, types.NUMERIC, (), 2.5),
        (1.1, types.FLOAT8, types.NUMERIC, (), 1.1),
        ("0.12345678901234567890", None, types.NUMERIC, (), "0.1234567890123456789"),
        ("yes", None, types.BOOL, (), 1),
        (" F ", None, types.BOOL, (), 0),
        (5, types.INT8, types.BOOL, (), 1),
        (1, types.BOOL, types.TEXT, (), "true"),
        (1.0, types.FLOAT8, types.TEXT, (), "1"),
        (b"\1\xff", types.BYTEA, types.TEXT, (), "\\x01ff"),
        ("2024-01-05 10:00:00+00:00", types.TIMESTAMPTZ, types.TEXT, (), "2024-01-05 10:00:00+00"),
        ("abcdef", types.TEXT, types.VARCHAR, (3,), "abc"),
        ("a ", types.TEXT, types.BPCHAR, (3,), "a"),
        ("2024-1-5", None, types.DATE, (), "2024-01-05"),
        ("2024-01-05 10:00:00", types.TIMESTAMP, types.DATE, (), "2024-01-05"),
        ("2024-01-05 10:00:00.5", types.TIMESTAMP, types.TIME, (), "10:00:00.500000"),
        ("2024-01-05", types.DATE, types.TIMESTAMPTZ, (), "2024-01-05 00:00:00+00:00"),
        ("2024-01-05 12:00+02", None, types.TIMESTAMPTZ, (), "2024-01-05 10:00:00+00:00"),
        ("2024-01-05 10:00:00.55", None, types.TIMESTAMP, (1,), "2024-01-05 10:00:00.600000"),
        ("{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}", None, types.UUID, (), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ('{"bb": 1.50, "a": [true, null, "é"], "a": 2}', None, types.JSONB, (), '{"a": 2, "bb": 1.5}'),
        ('{"a": [1.0, -0.0, 1e2, 0.50, 10]}', None, types.JSONB, (), '{"a": [1, 0, 100, 0.5, 10]}'),
        (1e20, types.JSONB, types.JSONB, (), "100000000000000000000"),
        (5, types.JSON, types.JSONB, (), "5"),
        ('{"b":1}', None, types.JSON, (), '{"b":1}'),
        ("\\x01ff", None, types.BYTEA, (), b"\1\xff"),
        ("a\\\\b\\001", None, types.BYTEA, (), b"a\\b\1"),
    ],
)
def test_a_cast_gives_what_postgresql_gives(
    value: Value, source: int | None, target: int, modifiers: tuple[int, ...], expected: Value
) -> None:
    assert convert(value, source, target, modifiers) == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "modifiers", "state"),
    [
        ("abc", None, types.INT4, (), "22P02"),
        ("1.5", None, types.INT4, (), "22P02"),
        ("1_000", None, types.INT4, (), "22P02"),
        ("٣", None, types.INT4, (), "22P02"),
        ("99999", None, types.INT2, (), "22003"),
        (2**40, types.INT8, types.INT4, (), "22003"),
        (1e30, types.FLOAT8, types.INT8, (), "22003"),
        (float("inf"), types.FLOAT8, types.INT8, (), "22003"),
        ("1e999", None, types.FLOAT8, (), "22003"),
        ("x", None, types.FLOAT8, (), "22P02"),
        (1e300, types.FLOAT8, types.FLOAT4, (), "22003"),
        ("12345.6", None, types.NUMERIC, (5, 2), "22003"),
        ("maybe", None, types.BOOL, (), "22P02"),
        (1.5, types.FLOAT8, types.BOOL, (), "42846"),
        ("x", None, types.DATE, (), "22007"),
        ("2024-02-30", None, types.DATE, (), "22008"),
        (5, types.INT8, types.DATE, (), "42846"),
        ("x", None, types.UUID, (), "22P02"),
        ("{a}", None, types.JSONB, (), "22P02"),
        ("[NaN]", None, types.JSON, (), "22P02"),
        ("\\xzz", None, types.BYTEA, (), "22P02"),
        (b"a", types.BYTEA, types.INT8, (), "42846"),
    ],
)
def test_a_value_that_is_not_of_the_type_is_refused(
    value: Value, source: int | None, target: int, modifiers: tuple[int, ...], state: str
) -> None:
    with pytest.raises(SqlError) as refused:
        convert(value, source, target, modifiers)
    assert refused.value.sqlstate == state


def test_floats_are_written_with_the_fewest_digits() -> None:
    assert [text_of_float(value) for value in (1e15, 1e14, 0.1, 1e-5, 1e-4, -0.0, 1.5e300, float("nan"), float("-inf"))] == [
        *("1e+15", "100000000000000", "0.1", "1e-05", "0.0001", "-0", "1.5e+300", "NaN", "-Infinity")
    ]


def test_like_is_glob_with_other_letters() -> None:
    assert glob_of_like("a%_*?[\\%\\\\") == "a*?[*][?][[]%\\"
    assert glob_of_like("a!%", "!") == "a%"
    assert glob_of_like("a\\", "") == "a\\"
    with pytest.raises(SqlError, match="escape"):
        glob_of_like("a\\")


@pytest.mark.parametrize(
    ("text", "oid", "expected"),
    [
        ("{}", 1007, []),
        ("{1,NULL, 3}", 1007, [1, None, 3]),
        ('{a,"b,\\"c\\\\", "NULL",null}', 1009, ["a", 'b,"c\\', "NULL", None]),
        ("{t,f}", 1000, [1, 0]),
        ("{2024-1-5}", 1182, ["2024-01-05"]),
        ('{"\\\\x01ff"}', 1001, ["01ff"]),
        ("{1.50,2}", 1231, [1.5, 2]),
    ],
)
def test_an_array_in_text_is_read(text: str, oid: int, expected: list[object]) -> None:
    assert json.loads(decode_array(text.encode(), oid, False)) == expected


def test_an_array_in_binary_is_read() -> None:
    data = struct.pack(">iiIii", 1, 1, 23, 3, 1) + struct.pack(">ii", 4, 7) + struct.pack(">i", -1) + struct.pack(">ii", 4, -2)
    assert json.loads(decode_array(data, 1007, True)) == [7, None, -2]
    assert decode_array(struct.pack(">iiI", 0, 0, 23), 1007, True) == "[]"


@pytest.mark.parametrize(
    ("data", "is_binary", "state"),
    [(b"1,2", False, "22P02"), (b"{1", False, "22P02"), (b"{{1}}", False, "0A000"), (b"{x}", False, "22P02"), (b"{1,}", False, "22P02"),
     (b"\0\0", True, "22P03"), (struct.pack(">iiIiiii", 2, 0, 23, 1, 1, 1, 1), True, "0A000"),
     (struct.pack(">iiIiii", 1, 0, 23, 1, 1, 99) + b"x", True, "22P03"), (b"\xff{", False, "22021")],
)  # fmt: skip
def test_what_is_no_array_is_refused(data: bytes, is_binary: bool, state: str) -> None:
    with pytest.raises(SqlError) as refused:
        decode_array(data, 1007, is_binary)
    assert refused.value.sqlstate == state


def test_moments_are_made_of_microseconds() -> None:
    micros = 1_700_000_000_123_456
    assert [text_of_micros(micros, oid) for oid in (types.TIMESTAMPTZ, types.TIMESTAMP, types.DATE, types.TIME)] == [
        *("2023-11-14 22:13:20.123456+00:00", "2023-11-14 22:13:20.123456", "2023-11-14", "22:13:20.123456")
    ]
    assert round_moment("2023-12-31 23:59:59.900000+00:00", types.TIMESTAMPTZ, 0) == "2024-01-01 00:00:00+00:00"


def outcome(value: Value, source: int, modifiers: tuple[int, ...]) -> object:
    """The result with its type, or the code of the error."""
    try:
        found = convert(value, source, types.NUMERIC, modifiers)
    except SqlError as error:
        return error.sqlstate
    return type(found), found


DECIMALS = st.decimals(-(10**6), 10**6, allow_nan=False, places=3).map(float)
PRECISIONS = st.tuples(st.integers(1, 20), st.integers(-2, 20)) | st.tuples(st.integers(1, 20))


@given(st.integers(-(10**6), 10**6) | st.integers(-(2**63), 2**63 - 1) | DECIMALS | st.floats(allow_nan=False), PRECISIONS)
def test_a_number_that_fits_its_column_is_what_the_decimal_would_be(value: int | float, modifiers: tuple[int, ...]) -> None:
    for source in (types.NUMERIC, types.FLOAT4, types.FLOAT8):
        found = outcome(value, source, modifiers)
        with patch.object(conversions, "_fits", lambda *_: False):
            assert outcome(value, source, modifiers) == found
