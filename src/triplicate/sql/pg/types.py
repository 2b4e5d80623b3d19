"""PostgreSQL's types for SQLite's values: object ids, and both formats of each, in both directions. Pure.

SQLite stores integers, floats, text, bytes and NULL; a column's declared type says what a client sees. Dates, times, UUIDs and JSON
are stored as text in the form that PostgreSQL prints.
Source: PostgreSQL 15, catalogue ``pg_type`` and the types' send and receive functions.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from triplicate.errors import SqlError
from triplicate.sql.interface import Value

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, JSON = 16, 17, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
CHAR1, NAME, INT2VECTOR, INT2_ARRAY, TEXT_ARRAY, OID_ARRAY = 18, 19, 22, 1005, 1009, 1028
"""Types that only the catalogue's columns have."""
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID, JSONB = 1082, 1083, 1114, 1184, 1700, 2950, 3802

TYPE_SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIME: 8, TIMESTAMP: 8, TIMESTAMPTZ: 8, UUID: 16}
"""Bytes of the fixed-size types, for RowDescription; all others are -1."""

_TEXTUAL = (TEXT, VARCHAR, BPCHAR, UNKNOWN, JSON)
_EPOCH_DATE = dt.date(2000, 1, 1)
_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)
_MICROSECOND = dt.timedelta(microseconds=1)
_INTEGERS = {INT2: struct.Struct(">h"), INT4: struct.Struct(">i"), INT8: struct.Struct(">q"), OID: struct.Struct(">I")}
_FLOAT8 = struct.Struct(">d")
_FLOAT4 = struct.Struct(">f")

_DECLARED: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), oid)
    for pattern, oid in (
        (r"^OID$", OID),
        (r'^"char"$', CHAR1),
        (r"^NAME$", NAME),
        (r"^INT2VECTOR$", INT2VECTOR),
        (r"^INT2\[\]$", INT2_ARRAY),
        (r"^TEXT\[\]$", TEXT_ARRAY),
        (r"^INTERVAL", TEXT),
        (r"^BOOL", BOOL),
        (r"^TIMESTAMP ?TZ|^TIMESTAMP.*WITH TIME ZONE", TIMESTAMPTZ),
        (r"^TIMESTAMP|^DATETIME", TIMESTAMP),
        (r"^DATE$", DATE),
        (r"^TIME", TIME),
        (r"^UUID", UUID),
        (r"^JSONB", JSONB),
        (r"^JSON", JSON),
        (r"INT", INT8),
        (r"^(BIG|SMALL)?SERIAL", INT8),
        (r"CHAR|CLOB|TEXT", TEXT),
        (r"BLOB|BYTEA", BYTEA),
        (r"REAL|FLOA|DOUB", FLOAT8),
        (r"^NUMERIC|^DECIMAL", NUMERIC),
    )
)


def oid_of_declared(declared: str) -> int:
    """The type that a client sees for a column declared so; text for what SQLite would call BLOB or NUMERIC by default."""
    for pattern, oid in _DECLARED:
        if pattern.search(declared):
            return oid
    return TEXT


def oid_of_value(value: Value) -> int | None:
    """The type of an expression from one of its values; None for NULL, which tells nothing."""
    match value:
        case None:
            return None
        case int():
            return INT8
        case float():
            return FLOAT8
        case str():
            return TEXT
        case _:
            return BYTEA


# Parameters: what a client sends, as SQLite shall store it.


def decode_parameter(data: bytes | None, oid: int, is_binary: bool) -> Value:
    """Decode one parameter by its type and format; type 0 is text.

    Raises:
        SqlError: 22P02 for text that is not of the type, 22P03 for binary that is not, 22003 out of range, 0A000 for a binary type
            unknown here.
    """
    if data is None:
        return None
    try:
        return _decode_binary(data, oid) if is_binary else _decode_text(data, oid)
    except (ValueError, InvalidOperation, struct.error, OverflowError) as error:
        state = "22P03" if is_binary else "22P02"
        shown = data[:40].hex() if is_binary else data[:40].decode("utf-8", "replace")
        raise SqlError(state, f"invalid input for type oid {oid}: {shown!r} ({error})") from None


def _integer_in_range(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise SqlError("22003", f"{value} is out of the range of a 64-bit integer")
    return value


def _decode_text(data: bytes, oid: int) -> Value:
    text = data.decode("utf-8")
    if oid in _INTEGERS:
        return _integer_in_range(int(text))
    match oid:
        case 16:
            return _bool_of_text(text)
        case 700 | 701:
            return float(text)
        case 1700:
            return _value_of_decimal(Decimal(text))
        case 17:
            return _bytea_of_text(text)
        case 1082:
            return dt.date.fromisoformat(text).isoformat()
        case 1083:
            return dt.time.fromisoformat(text).isoformat()
        case 1114:
            return dt.datetime.fromisoformat(text).replace(tzinfo=None).isoformat(" ")
        case 1184:
            return _text_of_instant(dt.datetime.fromisoformat(text))
        case 2950:
            return str(uuid.UUID(text))
    return text


def _bool_of_text(text: str) -> int:
    lowered = text.strip().lower()
    if lowered in ("t", "true", "y", "yes", "on", "1"):
        return 1
    if lowered in ("f", "false", "n", "no", "off", "0"):
        return 0
    raise ValueError("not a boolean")


def _bytea_of_text(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    return re.sub(rb"\\(\\|[0-7]{3})", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), text.encode())


def _text_of_instant(moment: dt.datetime) -> str:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC).isoformat(" ")


def _value_of_decimal(number: Decimal) -> Value:
    """An integer where it is one, a float where that is exact enough to print the same, else text, so that nothing is lost."""
    if not number.is_finite():
        return float(number)
    if number == number.to_integral_value() and abs(number) < 2**63:
        return int(number)
    as_float = float(number)
    return as_float if Decimal(repr(as_float)) == number else str(number)


def _int(layout: str, data: bytes) -> int:
    return int(struct.unpack(layout, data)[0])


def _decode_binary(data: bytes, oid: int) -> Value:
    if oid in _INTEGERS:
        return int(_INTEGERS[oid].unpack(data)[0])
    if oid in _TEXTUAL or oid == 0:
        return data.decode("utf-8")
    match oid:
        case 16:
            return data[0] != 0
        case 17:
            return bytes(data)
        case 700:
            return float(_FLOAT4.unpack(data)[0])
        case 701:
            return float(_FLOAT8.unpack(data)[0])
        case 1700:
            return _value_of_decimal(_decode_numeric(data))
        case 1082:
            return (_EPOCH_DATE + dt.timedelta(days=_int(">i", data))).isoformat()
        case 1083:
            return (_EPOCH + _int(">q", data) * _MICROSECOND).time().isoformat()
        case 1114:
            return (_EPOCH + _int(">q", data) * _MICROSECOND).isoformat(" ")
        case 1184:
            return _text_of_instant(_EPOCH + _int(">q", data) * _MICROSECOND)
        case 2950:
            return str(uuid.UUID(bytes=data))
        case 3802:
            return data[1:].decode("utf-8")
    raise SqlError("0A000", f"a binary parameter of type oid {oid} is not supported; send it as text")


def _decode_numeric(data: bytes) -> Decimal:
    count, weight, sign, _scale = struct.unpack_from(">hhHh", data)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        return Decimal("Infinity") if sign == 0xD000 else Decimal("-Infinity")
    number = Decimal(0)
    for index, digit in enumerate(struct.unpack_from(f">{count}h", data, 8)):
        number += Decimal(digit).scaleb(4 * (weight - index))
    return -number if sign == 0x4000 else number


# Results: SQLite's values, as the described type and format want them.


def encode_value(value: Value, oid: int, is_binary: bool) -> bytes | None:
    """Encode one value of a result.

    Raises:
        SqlError: 22P02 when a value cannot be shown as the column's type in binary (SQLite lets any column hold any value).
    """
    if value is None:
        return None
    if not is_binary:
        return _encode_text(value, oid)
    try:
        return _encode_binary(value, oid)
    except (ValueError, TypeError, struct.error, InvalidOperation, OverflowError) as error:
        raise SqlError(
            "22P02",
            f"the value {value!r:.60} cannot be sent as type oid {oid}: {error}",
            hint="CAST the expression in the query to the type that you want to receive",
        ) from None


def _encode_text(value: Value, oid: int) -> bytes:
    if oid == BOOL and isinstance(value, int):
        return b"t" if value else b"f"
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, float):
        return _text_of_float(value).encode()
    if isinstance(value, str) and oid in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return _text_of_moment(value, oid).encode("utf-8", "surrogateescape")
    return str(value).encode("utf-8", "surrogateescape")


def _text_of_float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def _text_of_moment(text: str, oid: int) -> str:
    """The form that PostgreSQL prints, where the stored text can be read as a moment; otherwise as stored."""
    try:
        if oid == DATE:
            return dt.date.fromisoformat(text[:10]).isoformat()
        if oid == TIME:
            return dt.time.fromisoformat(text).isoformat()
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return text
    return _text_of_instant(moment).replace("+00:00", "+00") if oid == TIMESTAMPTZ else moment.replace(tzinfo=None).isoformat(" ")


def _encode_binary(value: Value, oid: int) -> bytes:
    if oid in _INTEGERS:
        return _INTEGERS[oid].pack(_as_integer(value))
    encoder = _BINARY.get(oid)
    if encoder is not None:
        return encoder(value)
    return _encode_text(value, TEXT)


def _as_integer(value: Value) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise TypeError("not an integer")


def _as_float(value: Value) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    raise TypeError("not a number")


def _as_text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("not text")


def _as_bytes(value: Value) -> bytes:
    if isinstance(value, (int, float, str)) or value is None:
        return str(value).encode("utf-8", "surrogateescape")
    return value


def _microseconds(moment: dt.datetime) -> bytes:
    return struct.pack(">q", (moment - _EPOCH) // _MICROSECOND)


def _encode_timestamp(value: Value) -> bytes:
    return _microseconds(dt.datetime.fromisoformat(_as_text(value)).replace(tzinfo=None))


def _encode_timestamptz(value: Value) -> bytes:
    moment = dt.datetime.fromisoformat(_text_of_instant(dt.datetime.fromisoformat(_as_text(value))))
    return _microseconds(moment.replace(tzinfo=None))


def _encode_time(value: Value) -> bytes:
    return _microseconds(dt.datetime.combine(_EPOCH_DATE, dt.time.fromisoformat(_as_text(value)).replace(tzinfo=None)))


def _encode_date(value: Value) -> bytes:
    return struct.pack(">i", (dt.date.fromisoformat(_as_text(value)[:10]) - _EPOCH_DATE).days)


def _encode_numeric(value: Value) -> bytes:
    number = Decimal(str(value)) if isinstance(value, (int, float, str)) else None
    if number is None:
        raise TypeError("not a number")
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack(">hhHh", 0, 0, sign, 0)
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    whole, _, fraction = f"{abs(number):f}".partition(".")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    digits = [int(text[i : i + 4]) for text in (whole, fraction) for i in range(0, len(text), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if number < 0 else 0
    return struct.pack(f">hhHh{len(digits)}h", len(digits), weight if digits else 0, sign, scale, *digits)


_BINARY: dict[int, Callable[[Value], bytes]] = {
    BOOL: lambda value: b"\1" if _as_integer(value) else b"\0",
    BYTEA: _as_bytes,
    FLOAT4: lambda value: _FLOAT4.pack(_as_float(value)),
    FLOAT8: lambda value: _FLOAT8.pack(_as_float(value)),
    DATE: _encode_date,
    TIME: _encode_time,
    TIMESTAMP: _encode_timestamp,
    TIMESTAMPTZ: _encode_timestamptz,
    NUMERIC: _encode_numeric,
    UUID: lambda value: uuid.UUID(_as_text(value)).bytes,
    JSONB: lambda value: b"\1" + _as_text(value).encode(),
}
