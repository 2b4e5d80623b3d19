"""The short paths of fields and parameters give what the general functions give."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import ELEMENT_OF, decode_array
from triplicate.sql.pg.values.field_codecs import field_encoder, parameter_decoder

OIDS = (
    *types.TYPE_SIZES,
    types.TEXT,
    types.VARCHAR,
    types.BPCHAR,
    types.UNKNOWN,
    types.BYTEA,
    types.NUMERIC,
    types.JSON,
    types.JSONB,
    18,
    1000,
    1007,
)
TYPMODS = (
    -1,
    types.typmod_of_scale(0),
    types.typmod_of_scale(2),
    types.typmod_of_declared("numeric(8, 3)"),
    types.typmod_of_declared("varchar(9)"),
)
TEXTS = st.sampled_from(
    ("2024-02-29", "10:11:12.5", "2024-02-29 10:11:12.500000", "2024-02-29 10:11:12+00:00", "t", "{1,0}", "12.50", "\udc80")
)
VALUES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-10, 10), st.floats(), st.text(), TEXTS, st.binary())


def outcome(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except SqlError as error:
        return error.sqlstate, error.message


def general(value: Value, oid: int, is_binary: bool, typmod: int) -> bytes:
    if oid in (types.INT2, types.INT4, types.INT8) and type(value) is float and abs(value) >= 2.0**63:
        raise SqlError("22003", "bigint out of range")
    data = types.encode_value(value, oid, is_binary, typmod)
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


@settings(max_examples=examples(1500))
@given(VALUES, st.sampled_from(OIDS), st.booleans(), st.sampled_from(TYPMODS))
@example(-0.0, types.NUMERIC, False, TYPMODS[2])
@example(1e22, types.NUMERIC, False, TYPMODS[2])
@example(12.3456, types.NUMERIC, False, TYPMODS[2])
@example(1e15, types.NUMERIC, False, TYPMODS[2])
@example(9.3e18, types.INT8, False, -1)
@example("\udc80", types.TEXT, True, -1)
@example(40_000, types.INT2, True, -1)
@example("2024-02-29 10:11:12", types.TIMESTAMPTZ, True, -1)
def test_a_field_is_encoded_as_by_the_general_function(value: Value, oid: int, is_binary: bool, typmod: int) -> None:
    assert outcome(field_encoder(oid, is_binary, typmod), value) == outcome(general, value, oid, is_binary, typmod)


@settings(max_examples=examples(1500))
@given(
    st.one_of(
        st.none(),
        st.binary(max_size=12),
        st.integers().map(lambda number: str(number).encode()),
        st.text().map(lambda text: text.encode("utf-8", "replace")),
    ),
    st.sampled_from((0, 1186, *OIDS, *ELEMENT_OF)),
    st.booleans(),
)
@example(b"0999999999", types.INT4, False)
@example(b"2147483648", types.INT4, False)
@example(b"32768", types.INT2, False)
@example(b"1_0", types.INT4, False)
@example(b" 7 ", types.INT8, False)
@example(b"", types.INT8, False)
@example(b"a\0b", types.TEXT, True)
@example(b"\xff", types.VARCHAR, False)
def test_a_parameter_is_decoded_as_by_the_general_function(data: bytes | None, oid: int, is_binary: bool) -> None:
    def decode() -> Value:
        if oid in ELEMENT_OF:
            return None if data is None else decode_array(data, oid, is_binary)
        return types.decode_parameter(data, oid, is_binary)

    assert outcome(parameter_decoder(oid, is_binary), data) == outcome(decode)


@pytest.mark.parametrize("is_binary", [False, True])
def test_an_overflow_of_sqlites_integers_is_an_error(is_binary: bool) -> None:
    with pytest.raises(SqlError, match="out of range") as refused:
        field_encoder(types.INT8, is_binary, -1)(2.0**63)
    assert refused.value.sqlstate == "22003"
