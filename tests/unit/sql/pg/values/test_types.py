"""Values in both formats, both ways; the expected forms are PostgreSQL's own."""

from __future__ import annotations

import contextlib
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.numeric import DecimalBinaryDumper

from triplicate.errors import ProtocolError, SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.values import types

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXTS, st.binary())
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat(" "))


@pytest.mark.parametrize("is_binary", [False, True])
@given(value=VALUES)
def test_a_value_comes_back_from_its_own_type(is_binary: bool, value: Value) -> None:
    oid = types.oid_of_value(value)
    assert oid is not None
    assert types.decode_parameter(types.encode_value(value, oid, is_binary), oid, is_binary) == value


@pytest.mark.parametrize("is_binary", [False, True])
@given(text=MOMENTS)
def test_a_timestamp_comes_back(is_binary: bool, text: str) -> None:
    assert types.decode_parameter(types.encode_value(text, types.TIMESTAMP, is_binary), types.TIMESTAMP, is_binary) == text


@given(number=st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**8), max_value=10**8))
def test_a_numeric_comes_back_as_the_same_number(number: Decimal) -> None:
    data = types.encode_value(str(number), types.NUMERIC, True)
    assert Decimal(str(types.decode_parameter(data, types.NUMERIC, True))) == number


def test_numeric_has_postgresqls_binary_form() -> None:
    assert types.encode_value("12345.678", types.NUMERIC, True) == struct.pack(">hhHh3h", 3, 1, 0, 3, 1, 2345, 6780)
    assert types.encode_value(0, types.NUMERIC, True) == struct.pack(">hhHh", 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "oid", "stored"),
    [
        ("t", types.BOOL, 1),
        ("off", types.BOOL, 0),
        ("\\x00ff", types.BYTEA, b"\0\xff"),
        ("2013-01-01T05:00:00+02:00", types.TIMESTAMPTZ, "2013-01-01 03:00:00+00:00"),
        ("1.50", types.NUMERIC, 1.5),
        ("123456789012.345", types.NUMERIC, 123456789012.345),
        ("7", types.NUMERIC, 7),
        ("0e-999", types.FLOAT8, 0.0),
        ("3e-324", types.FLOAT8, 5e-324),
        ("-Infinity", types.FLOAT4, float("-inf")),
        ("1e-45", types.FLOAT4, 1e-45),
        ("7", 0, "7"),
    ],
)
def test_text_parameters_are_stored_in_their_plain_form(text: str, oid: int, stored: Value) -> None:
    assert types.decode_parameter(text.encode(), oid, False) == stored


@pytest.mark.parametrize(
    ("data", "oid", "is_binary", "state"),
    [
        (b"abc", types.INT8, False, "22P02"),
        (b"99999999999999999999", types.INT8, False, "22003"),
        (b"\0", types.INT8, True, "22P03"),
        (b"2013-13-01", types.DATE, False, "22008"),
        (b"\xff", types.TEXT, False, "22021"),
        (b"x", 600, True, "0A000"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(data: bytes, oid: int, is_binary: bool, state: str) -> None:
    with pytest.raises(SqlError) as caught:
        types.decode_parameter(data, oid, is_binary)
    assert caught.value.sqlstate == state


def test_a_value_that_is_not_of_its_columns_type_is_refused_in_binary() -> None:
    with pytest.raises(SqlError, match="cannot be sent"):
        types.encode_value("abc", types.INT8, True)
    assert types.encode_value("abc", types.INT8, False) == b"abc"


@given(letter=st.sampled_from([b"Q", b"P", b"B", b"D", b"C", b"E", b"S", b"H", b"X", b"F", b"?"]), body=st.binary(max_size=60))
def test_garbage_messages_raise_only_what_the_conversation_handles(letter: bytes, body: bytes) -> None:
    with contextlib.suppress(ProtocolError, SqlError):
        wire.decode_message(letter, body)


@given(bodies=st.lists(st.binary(max_size=30), max_size=6), cuts=st.lists(st.integers(1, 20), max_size=40))
def test_messages_are_cut_out_of_any_chunks(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(b"Q" + struct.pack(">i", len(body) + 4) + body for body in bodies)
    buffer = wire.MessageBuffer(1000)
    seen: list[bytes] = []
    at = 0
    for cut in [*cuts, len(stream)]:
        buffer.feed(stream[at : at + cut])
        at += cut
        while (message := buffer.next_message()) is not None:
            seen.append(message[1])
    assert seen == bodies


NUMERIC_10_2 = types.typmod_of_declared("numeric(10,2)")


@pytest.mark.parametrize(
    ("value", "typmod", "text"),
    [
        (1.5, NUMERIC_10_2, "1.50"),
        (1, NUMERIC_10_2, "1.00"),
        (-0.05, NUMERIC_10_2, "-0.05"),
        (0, NUMERIC_10_2, "0.00"),
        (7, types.typmod_of_declared("numeric(5)"), "7"),
        (1.5, -1, "1.5"),
        (2.0, -1, "2"),
        (1e20, -1, "100000000000000000000"),
        (1e-7, -1, "0.0000001"),
        (1.005, NUMERIC_10_2, "1.005"),
    ],
)
def test_a_numeric_is_shown_with_the_scale_of_its_column(value: Value, typmod: int, text: str) -> None:
    assert types.encode_value(value, types.NUMERIC, False, typmod) == text.encode()
    data = types.encode_value(value, types.NUMERIC, True, typmod)
    assert data is not None
    (scale,) = struct.unpack_from(">H", data, 6)
    assert scale == len(text.partition(".")[2])
    assert types.decode_parameter(data, types.NUMERIC, True) == value


@pytest.mark.parametrize(
    ("declared", "oid", "typmod"),
    [
        ("numeric(10,2)", types.NUMERIC, 655366),
        ("NUMERIC(5)", types.NUMERIC, 327684),
        ("numeric", types.NUMERIC, -1),
        ("character varying(40)", types.VARCHAR, 44),
        ("VARCHAR(1)", types.VARCHAR, 5),
        ("varchar", types.VARCHAR, -1),
        ("char(3)", types.TEXT, -1),
        ("text", types.TEXT, -1),
        ("bigint", types.INT8, -1),
    ],
)
def test_lengths_and_scales_are_type_modifiers(declared: str, oid: int, typmod: int) -> None:
    assert (types.oid_of_declared(declared), types.typmod_of_declared(declared)) == (oid, typmod)


@pytest.mark.parametrize(
    ("text", "declared", "stored"),
    [
        ("1.005", "numeric(10,2)", 1.01),
        ("-1.005", "numeric(10,2)", -1.01),
        ("2.5", "numeric(3)", 3),
        ("true", "boolean", 1),
        ("fal", "bool", 0),
        ("1970-01-01 +00", "date", "1970-01-01"),
        ("2020-01-01 05:00:00+02", "timestamptz", "2020-01-01 03:00:00+00:00"),
        ("\\x00FF", "bytea", b"\0\xff"),
        ("a\\000\\\\", "bytea", b"a\0\\"),
        ("{00000000-0000-0000-0000-00000000000A}", "uuid", "00000000-0000-0000-0000-00000000000a"),
        (" 7 ", "int", 7),
    ],
)
def test_a_text_becomes_what_a_column_stores(text: str, declared: str, stored: Value) -> None:
    assert types.convert_text(text, declared) == stored


@pytest.mark.parametrize(
    ("text", "oid", "sqlstate"),
    [
        ("NaN", types.FLOAT8, "0A000"),
        ("nan", types.NUMERIC, "0A000"),
        ("1e400", types.FLOAT8, "22003"),
        ("-1e-400", types.FLOAT8, "22003"),
        ("2e-324", types.FLOAT8, "22003"),
        ("1e-50", types.FLOAT4, "22003"),
        ("3.5e38", types.FLOAT4, "22003"),
        ("1_000", types.INT8, "22P02"),
        ("1_0.5", types.NUMERIC, "22P02"),
        ("\u0661", types.INT8, "22P02"),
        ("40000", types.INT2, "22003"),
        ("3000000000", types.INT4, "22003"),
        ("12345678901234567890.1", types.NUMERIC, "22003"),
        ("0.12345678901234567", types.NUMERIC, "22003"),
        ("1 day", types.INTERVAL, "0A000"),
        ("04:05:06+02", types.TIMETZ, "0A000"),
        ("{", types.JSON, "22P02"),
        ("\\9", types.BYTEA, "22P02"),
        ("a\0b", types.TEXT, "22021"),
    ],
)
def test_a_text_that_cannot_be_kept_is_refused(text: str, oid: int, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        types.decode_parameter(text.encode(), oid, False)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e15, "1e+15"), (-1.5e15, "-1.5e+15"), (123456789012345.0, "123456789012345"), (1e16, "1e+16"), (0.0001, "0.0001"), (1e-5, "1e-05")],
)
def test_floats_are_printed_as_postgresql_does(value: float, text: str) -> None:
    assert types.encode_value(value, types.FLOAT8, False) == text.encode()


@pytest.mark.parametrize("text", ["1.0000000000000000000000000000000000001", "1." + "0" * 5000 + "1", "12345678901234567890.5"])
def test_a_numeric_of_too_many_digits_is_refused_in_binary_as_in_text(text: str) -> None:
    number = Decimal(text)
    sent = DecimalBinaryDumper(Decimal).dump(number)
    assert sent is not None
    for data, is_binary in ((bytes(sent), True), (text.encode(), False)):
        with pytest.raises(SqlError) as refused:
            types.decode_parameter(data, types.NUMERIC, is_binary)
        assert refused.value.sqlstate == "22003"


def test_a_numeric_whose_digits_are_none_is_refused() -> None:
    with pytest.raises(SqlError) as refused:
        types.decode_parameter(struct.pack(">hhHhh", 1, 0, 0, 0, 12345), types.NUMERIC, is_binary=True)
    assert refused.value.sqlstate == "22P03"


@pytest.mark.parametrize(("oid", "data"), [(types.JSON, b"nojson"), (types.JSONB, b"\1nojson")])
def test_what_is_no_json_is_named_so_in_binary_too(oid: int, data: bytes) -> None:
    with pytest.raises(SqlError, match="'nojson'") as refused:
        types.decode_parameter(data, oid, is_binary=True)
    assert refused.value.sqlstate == "22P02"


@pytest.mark.parametrize(("value", "sent"), [("", b"\0"), ("s", b"s")])
def test_the_catalogues_char_is_one_byte_in_binary(value: str, sent: bytes) -> None:
    assert types.encode_value(value, 18, is_binary=True) == sent
    assert types.encode_value(value, 18, is_binary=False) == value.encode()


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.3, "0.3"), (1 / 3, "0.33333334"), (-0.0, "-0.0"), (2**24 + 1, "16777216.0"), (1e-45, "1e-45"), (float("inf"), "inf")],
)
def test_a_float_of_32_bits_is_its_shortest_decimal(number: float, text: str) -> None:
    """From an expression and from a client that sends its bits: both equal what a column keeps."""
    assert repr(types.float_of_32_bits(number)) == text
    if abs(number) < 1e30:
        assert repr(types.decode_parameter(struct.pack(">f", number), types.FLOAT4, True)) == text
