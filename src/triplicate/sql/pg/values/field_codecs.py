"""Functions that convert the values of one column or parameter, made once for its type and format. Pure.

Each has a short path for the values that its type has as a rule. Every other value, and every error, goes through `types`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import ELEMENT_OF, decode_array

FieldEncoder = Callable[[Value], bytes]
"""Encodes a value as a field of DataRow: its length in 4 bytes, then its bytes. NULL has the length -1."""
ParameterDecoder = Callable[[bytes | None], Value]

_NULL = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct(">i")
_FIXED = {types.INT2: struct.Struct(">ih"), types.INT4: struct.Struct(">ii"), types.INT8: struct.Struct(">iq")}
"""Maps a type to its length and value."""
_INTEGERS = {types.INT2: struct.Struct(">h"), types.INT4: struct.Struct(">i"), types.INT8: struct.Struct(">q")}
_SAFE_DIGITS = {types.INT2: 4, types.INT4: 9, types.INT8: 18}
"""Maps a type to a number of digits of which every number is in its range."""
_PLAIN_IN_TEXT = frozenset(
    (types.INT2, types.INT4, types.INT8, types.OID, types.TEXT, types.VARCHAR, types.BPCHAR, types.UUID, types.JSON, types.JSONB)
)
"""Types whose integers and texts are sent in text format as SQLite has them."""
_PLAIN_IN_BINARY = frozenset((types.TEXT, types.VARCHAR, types.BPCHAR, types.JSON))


def _field(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


@lru_cache(maxsize=4096)
def field_encoder(oid: int, is_binary: bool, typmod: int) -> FieldEncoder:
    """The encoder of a column's values. It raises SqlError as `types.encode_value`, and 22003 for an integer overflow."""

    def encode(value: Value) -> bytes:
        # SQLite converts to a float if integers overflow.
        if type(value) is float and oid in _INTEGERS and abs(value) >= 2.0**63:
            raise SqlError("22003", "bigint out of range", hint="Cast one side to numeric or double precision.")
        data = types.encode_value(value, oid, is_binary, typmod)
        return _NULL if data is None else _LENGTH.pack(len(data)) + data

    if is_binary:
        return _binary_encoder(oid, encode)
    if oid in _PLAIN_IN_TEXT:
        return _plain_encoder(encode)
    if oid == types.BOOL:
        return _bool_encoder(encode, _field(b"t"), _field(b"f"))
    if oid == types.NUMERIC:
        return _numeric_encoder(encode, types.scale_of_typmod(typmod))
    return encode


def _plain_encoder(encode: FieldEncoder) -> FieldEncoder:
    def encode_plain(value: Value) -> bytes:
        if type(value) is int:
            data = b"%d" % value
        elif type(value) is str:
            try:
                data = value.encode()
            except UnicodeEncodeError:
                return encode(value)
        else:
            return encode(value)
        return _LENGTH.pack(len(data)) + data

    return encode_plain


def _bool_encoder(encode: FieldEncoder, true: bytes, false: bytes) -> FieldEncoder:
    def encode_bool(value: Value) -> bytes:
        if type(value) is int:
            return true if value else false
        return encode(value)

    return encode_bool


def _numeric_encoder(encode: FieldEncoder, scale: int | None) -> FieldEncoder:
    zeros = "." + "0" * scale if scale else ""

    def encode_numeric(value: Value) -> bytes:
        if type(value) is int:
            return _field(f"{value}{zeros}".encode())
        if type(value) is float:
            text = repr(value)
            whole, point, fraction = text.partition(".")
            if point and fraction.isdigit():  # Neither an exponent nor infinity.
                fraction = "" if fraction == "0" else fraction
                if scale is not None and len(fraction) < scale:
                    fraction = fraction.ljust(scale, "0")
                return _field(f"{whole}.{fraction}".encode() if fraction else whole.encode())
        return encode(value)

    return encode_numeric


def _binary_encoder(oid: int, encode: FieldEncoder) -> FieldEncoder:
    if oid in _FIXED:
        layout = _FIXED[oid]
        size = layout.size - 4

        def encode_integer(value: Value) -> bytes:
            if type(value) is int:
                try:
                    return layout.pack(size, value)
                except struct.error:
                    pass  # It is out of range: the general encoder raises the error.
            return encode(value)

        return encode_integer
    if oid in _PLAIN_IN_BINARY:
        return _plain_encoder(encode)
    if oid == types.BOOL:
        return _bool_encoder(encode, _field(b"\1"), _field(b"\0"))
    if oid == types.FLOAT8:
        pack = struct.Struct(">id").pack

        def encode_float(value: Value) -> bytes:
            return pack(8, value) if type(value) is float else encode(value)

        return encode_float
    if oid == types.BYTEA:

        def encode_bytes(value: Value) -> bytes:
            return _LENGTH.pack(len(value)) + value if type(value) is bytes else encode(value)

        return encode_bytes
    return encode


@lru_cache(maxsize=1024)
def parameter_decoder(oid: int, is_binary: bool) -> ParameterDecoder:
    """The decoder of a parameter. It raises SqlError as `types.decode_parameter` and `decode_array`."""
    if oid in ELEMENT_OF:
        return lambda data: None if data is None else decode_array(data, oid, is_binary)

    def decode(data: bytes | None) -> Value:
        return types.decode_parameter(data, oid, is_binary)

    if oid in _INTEGERS:
        return _binary_integer_decoder(oid, decode) if is_binary else _integer_decoder(_SAFE_DIGITS[oid], decode)
    if oid in (types.TEXT, types.VARCHAR):
        return _text_decoder(decode)
    return decode


def _binary_integer_decoder(oid: int, decode: ParameterDecoder) -> ParameterDecoder:
    layout = _INTEGERS[oid]

    def decode_integer(data: bytes | None) -> Value:
        if data is not None and len(data) == layout.size:
            value: int = layout.unpack(data)[0]
            return value
        return decode(data)

    return decode_integer


def _integer_decoder(safe_digits: int, decode: ParameterDecoder) -> ParameterDecoder:
    def decode_digits(data: bytes | None) -> Value:
        if data is not None and data.isdigit() and len(data) <= safe_digits:
            return int(data)
        return decode(data)

    return decode_digits


def _text_decoder(decode: ParameterDecoder) -> ParameterDecoder:
    def decode_text(data: bytes | None) -> Value:
        if data is None or b"\0" in data:
            return decode(data)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return decode(data)

    return decode_text
