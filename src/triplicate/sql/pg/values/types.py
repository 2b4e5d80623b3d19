"""PostgreSQL's types for SQLite's values: object ids, and the text and binary format of each, in both directions. Pure.

SQLite stores integers, floats, text, bytes and NULL; clients see a column's declared type. Dates, times, UUIDs and JSON are stored as
text, each value in one form (`core.datetime_text`), so that texts compare as the values do.
Source: PostgreSQL 15, catalogue ``pg_type`` and the types' input, output, send and receive functions.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from triplicate.errors import SqlError
from triplicate.sql.core.datetime_text import (
    date_of_days,
    datetime_of_microseconds,
    days_of,
    microseconds_of,
    shown_datetime,
    stored_datetime,
)
from triplicate.sql.core.declared_types import Declared, Kind, parse_declared
from triplicate.sql.core.interface import Value
from triplicate.sql.core.value_checks import is_json
from triplicate.sql.pg.values.array_results import ELEMENTS, array_in_text, encode_array
from triplicate.sql.pg.values.json_text import json_number, normal_json, number_text
from triplicate.sql.pg.values.numeric_limits import EXACT, decimal_of_text

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, JSON = 16, 17, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID, JSONB = 1082, 1083, 1114, 1184, 1700, 2950, 3802
INTERVAL, TIMETZ, VOID = 1186, 1266, 2278

TYPE_SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIME: 8, TIMESTAMP: 8, TIMESTAMPTZ: 8, UUID: 16}
"""Bytes of the types of fixed size, for RowDescription. All others have size -1."""

_TEXTUAL = (TEXT, VARCHAR, BPCHAR, UNKNOWN, JSON)
_INTEGERS = {INT2: struct.Struct(">h"), INT4: struct.Struct(">i"), INT8: struct.Struct(">q"), OID: struct.Struct(">I")}
_INTEGER_DIGITS = 20
"""More than any integer has."""
_FLOAT8 = struct.Struct(">d")
_FLOAT4 = struct.Struct(">f")
_FLOAT4_MAX = 3.4e38
SIGNIFICANT = re.compile("[^eE]*[1-9]")
"""The begin of a number's text, if it is not zero."""

_OIDS = {
    Kind.ANY: TEXT,
    Kind.BOOL: BOOL,
    Kind.INTEGER: INT8,
    Kind.FLOAT: FLOAT8,
    Kind.NUMERIC: NUMERIC,
    Kind.TEXT: TEXT,
    Kind.VARCHAR: VARCHAR,
    Kind.BYTEA: BYTEA,
    Kind.DATE: DATE,
    Kind.TIME: TIME,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMPTZ: TIMESTAMPTZ,
    Kind.UUID: UUID,
    Kind.JSON: JSON,
    Kind.JSONB: JSONB,
}
_MOMENTS = {DATE: Kind.DATE, TIME: Kind.TIME, TIMESTAMP: Kind.TIMESTAMP, TIMESTAMPTZ: Kind.TIMESTAMPTZ}
_NAMES = {
    BOOL: "boolean", BYTEA: "bytea", INT8: "bigint", INT2: "smallint", INT4: "integer", OID: "oid", FLOAT4: "real",
    FLOAT8: "double precision", NUMERIC: "numeric", UUID: "uuid", JSON: "json", JSONB: "jsonb", DATE: "date", TIME: "time",
    TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamp with time zone", INTERVAL: "interval", TIMETZ: "time with time zone",
}  # fmt: skip
_REFUSED = (INTERVAL, TIMETZ)


def oid_of_declared(declared: str) -> int:
    """The type of a column with this declaration for clients; text if SQLite's affinity would be BLOB or NUMERIC by default."""
    return _OIDS[parse_declared(declared).kind]


@lru_cache(maxsize=4096)
def typmod_of_declared(declared: str | None) -> int:
    """PostgreSQL's type modifier: the length of a varchar, or precision and scale of a numeric; -1 without one."""
    column_type = parse_declared(declared)
    if column_type.kind is Kind.VARCHAR and column_type.length is not None:
        return column_type.length + _TYPMOD_HEADER
    if column_type.kind is Kind.NUMERIC and column_type.precision is not None:
        return (column_type.precision << 16 | column_type.scale & 0x7FF) + _TYPMOD_HEADER
    return -1


def typmod_of_scale(scale: int) -> int:
    """The type modifier of a numeric with `scale` digits after the point and the largest precision."""
    return (_PRECISION_MAX << 16 | scale & 0x7FF) + _TYPMOD_HEADER


_TYPMOD_HEADER = 4
_PRECISION_MAX = 1000


def scale_of_typmod(typmod: int) -> int | None:
    """The digits after the point in a numeric's type modifier; None without one."""
    return (typmod - _TYPMOD_HEADER) & 0x7FF if typmod >= _TYPMOD_HEADER else None


def oid_of_value(value: Value) -> int | None:
    """The type of an expression from one of its values; None for NULL."""
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


# Parameters: from the client's formats to SQLite's values.


def decode_parameter(data: bytes | None, oid: int, is_binary: bool) -> Value:
    """Decode one parameter by its type and format; type 0 is text.

    Raises:
        SqlError: 22P02 for text that is not of the type, 22007 and 22008 for dates and times, 22P03 for binary that is not, 22003 for a
            value out of range, 22021 for text that is not UTF-8, 0A000 for an unsupported type and for values that cannot be stored.
    """
    if data is None:
        return None
    if oid in _REFUSED:
        raise SqlError("0A000", f"type {_NAMES[oid]} is not supported", hint="send it as text, to a column of type text")
    try:
        return _decode_binary(data, oid) if is_binary else value_of_text(data.decode("utf-8"), oid)
    except UnicodeDecodeError:
        raise SqlError("22021", f"invalid byte sequence for encoding UTF8: {data[:40].hex()}") from None
    except (ValueError, InvalidOperation, struct.error, OverflowError) as error:
        if not is_binary or oid in (JSON, JSONB):
            text = data[1:] if is_binary and oid == JSONB else data
            raise _malformed(repr(text[:40].decode("utf-8", "replace")), oid) from None
        raise SqlError("22P03", f"invalid binary input for type {_NAMES.get(oid, oid)}: {data[:40].hex()} ({error})") from None


def _malformed(shown: str, oid: int) -> SqlError:
    return SqlError("22P02", f"invalid input syntax for type {_NAMES.get(oid, oid)}: {shown}")


def convert_text(text: str, declared: str) -> Value:
    """The stored value of an untyped literal in a column of this declared type.

    A numeric is rounded to the scale of the type.

    Raises:
        SqlError: as `decode_parameter` and `fit`.
    """
    oid = oid_of_declared(declared)
    try:
        return fit(value_of_text(text, oid), declared)
    except (ValueError, InvalidOperation, OverflowError):
        raise _malformed(repr(text[:40]), oid) from None


def fit(value: Value, declared: str) -> Value:
    """A value as it is assigned to a column. A numeric is rounded half away from zero to the scale of its type; others stay.

    Raises:
        SqlError: 22003 if a numeric has too many digits for the type.
    """
    column_type = parse_declared(declared)
    if column_type.kind is not Kind.NUMERIC or column_type.precision is None or not isinstance(value, (int, float)):
        return value
    return _value_of_decimal(_rounded(Decimal(repr(value)), column_type))


def _rounded(number: Decimal, declared: Declared) -> Decimal:
    precision = declared.precision or 0
    if not number.is_finite() or abs(number) >= Decimal(10) ** (precision - declared.scale):
        raise _overflow(declared)
    rounded = number.quantize(Decimal(1).scaleb(-declared.scale), context=EXACT)
    if abs(rounded) >= Decimal(10) ** (precision - declared.scale):
        raise _overflow(declared)
    return rounded


def _overflow(declared: Declared) -> SqlError:
    return SqlError(
        "22003",
        "numeric field overflow",
        detail=f"A field with precision {declared.precision}, scale {declared.scale} must round to an absolute value less than"
        f" 10^{(declared.precision or 0) - declared.scale}.",
    )


def value_of_text(text: str, oid: int) -> Value:
    """The stored value of a type's text. Raises ValueError or InvalidOperation for malformed text, SqlError as `decode_parameter`."""
    if oid in _INTEGERS:
        return _integer_of_text(text, oid)
    if oid in _MOMENTS:
        return stored_datetime(text, _MOMENTS[oid])
    match oid:
        case 16:
            return _bool_of_text(text)
        case 700 | 701:
            return _not_nan(float_in_range(float(_plain(text)), oid, text))
        case 1700:
            return _value_of_decimal(decimal_of_text(_plain(text)))
        case 17:
            return _bytea_of_text(text)
        case 2950:
            return str(uuid.UUID(_plain(text)))
        case 114:
            if not is_json(text):
                raise ValueError("not JSON")
            _check_json_number(text)
        case 3802:
            _check_json_number(text)
            return normal_json(text)
    if "\0" in text:
        raise SqlError("22021", "text cannot contain the character with code zero")
    return text


def _check_json_number(text: str) -> None:
    """Check JSON that is only a number, which SQLite stores as a number. Raises SqlError 22003 if SQLite would change it."""
    number = json_number(text)
    if number is None:
        return
    is_integer = number == number.to_integral_value() and -(2**63) <= number < 2**63
    if not is_integer and number != Decimal(repr(float(number))):
        raise SqlError("22003", f"the json number {str(number)[:40]} has more digits than can be stored exactly")


def _plain(text: str) -> str:
    """Check the text of a number. Python accepts digits of any script and underscores, PostgreSQL does not. Raises ValueError."""
    if not text.isascii() or "_" in text:
        raise ValueError("not a number")
    return text.strip()


def _integer_of_text(text: str, oid: int) -> int:
    plain = _plain(text)
    digits = plain[plain[:1] in ("-", "+") :]
    if len(digits) > _INTEGER_DIGITS and digits.isdigit():  # Python reads 4,300 digits at most.
        plain = plain[: -len(digits)] + (digits.lstrip("0")[:_INTEGER_DIGITS] or "0")
    value = int(plain)
    bits = 8 * TYPE_SIZES[oid]
    low, high = (0, 2**bits) if oid == OID else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= value < high:
        raise SqlError("22003", f'value "{text[:40]}" is out of range for type {_NAMES[oid]}')
    return value


def float_in_range(number: float, oid: int, source: object) -> float:
    """A number as a float of the type.

    Args:
        source: the number, or its text, of which `number` is the nearest float.

    Raises:
        SqlError: 22003, it is beyond the type's largest number, or nearer to zero than its smallest.
    """
    found = number
    if oid == FLOAT4:
        try:
            found = float_of_32_bits(number)
        except OverflowError:
            found = math.inf
    if found and math.isfinite(found):
        return found
    text = str(source)
    if SIGNIFICANT.match(text) if found == 0.0 else math.isinf(found) and "inf" not in text.lower():
        raise SqlError("22003", f'"{text[:60]}" is out of range for type {"real" if oid == FLOAT4 else "double precision"}')
    return found


def _not_nan(value: float) -> float:
    # SQLite would silently store NULL.
    if value != value:
        raise SqlError("0A000", "NaN cannot be stored", hint="NULL stands for no number")
    return value


def _bool_of_text(text: str) -> int:
    lowered = text.strip().lower()
    if lowered in ("1", "on") or (lowered and ("true".startswith(lowered) or "yes".startswith(lowered))):
        return 1
    if lowered in ("0", "of", "off") or (lowered and ("false".startswith(lowered) or "no".startswith(lowered))):
        return 0
    raise ValueError("not a boolean")


def _bytea_of_text(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    if re.fullmatch(rb"(?s)(?:[^\\]|\\\\|\\[0-3][0-7]{2})*", text.encode()) is None:
        raise ValueError("not bytea")
    return re.sub(rb"\\(\\|[0-7]{3})", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), text.encode())


def _value_of_decimal(number: Decimal) -> Value:
    """A numeric as an integer, or else as a float that prints as the same number.

    Raises:
        SqlError: 22003 if neither is exact, because SQLite would store the nearest float; 0A000 for NaN.
    """
    if number.is_nan():
        raise SqlError("0A000", "NaN cannot be stored", hint="NULL stands for no number")
    if not number.is_finite():
        return float(number)
    if number == number.to_integral_value() and abs(number) < 2**63:
        return int(number)
    as_float = float(number)
    if Decimal(repr(as_float)) != number:
        raise SqlError(
            "22003",
            f"the numeric {str(number)[:60]} has more digits than can be stored exactly",
            hint="numeric keeps integers of 64 bits and numbers of up to 15 digits; use a column of type text for longer ones",
        )
    return as_float


def _int(layout: str, data: bytes) -> int:
    return int(struct.unpack(layout, data)[0])


def _decode_binary(data: bytes, oid: int) -> Value:
    if oid in _INTEGERS:
        return int(_INTEGERS[oid].unpack(data)[0])
    if oid in _TEXTUAL or oid == 0:
        return value_of_text(data.decode("utf-8"), oid)
    match oid:
        case 16:
            return _int(">b", data) != 0
        case 17:
            return bytes(data)
        case 700:
            return _not_nan(float_of_32_bits(_FLOAT4.unpack(data)[0]))
        case 701:
            return _not_nan(float(_FLOAT8.unpack(data)[0]))
        case 1700:
            return _value_of_decimal(_decode_numeric(data))
        case 1082:
            return date_of_days(_int(">i", data))
        case 1083 | 1114 | 1184:
            return datetime_of_microseconds(_int(">q", data), _MOMENTS[oid])
        case 2950:
            return str(uuid.UUID(bytes=data))
        case 3802:
            return value_of_text(data[1:].decode("utf-8"), oid)
    raise SqlError("0A000", f"a binary parameter of type oid {oid} is not supported; send it as text")


def _decode_numeric(data: bytes) -> Decimal:
    count, weight, sign, _scale = struct.unpack_from(">hhHh", data)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        return Decimal("Infinity") if sign == 0xD000 else Decimal("-Infinity")
    groups = struct.unpack_from(f">{count}h", data, 8)
    if not all(0 <= group <= 9999 for group in groups):
        raise ValueError("a group of digits is out of range")
    # From text, because Python's decimal arithmetic would round to 28 digits.
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    return Decimal(f"{'-' if sign == 0x4000 else ''}{digits}E{4 * (weight - count + 1)}")


# Results: from SQLite's values to the described type and format.


def encode_value(value: Value, oid: int, is_binary: bool, typmod: int = -1) -> bytes | None:
    """Encode one value of a result.

    Args:
        typmod: of the value's column; it determines the scale of a numeric.

    Raises:
        SqlError: 22P02 if a value cannot be encoded as the column's type, because SQLite stores any value in any column.
    """
    if value is None:
        return None
    try:
        return (_encode_binary if is_binary else _encode_text)(value, oid, typmod)
    except SqlError as error:
        raise SqlError("22P02", f"the value {value!r:.60} cannot be sent as type {_NAMES.get(oid, oid)}: {error.message}") from None
    except (ValueError, TypeError, struct.error, InvalidOperation, OverflowError) as error:
        raise SqlError(
            "22P02",
            f"the value {value!r:.60} cannot be sent as type oid {oid}: {error}",
            hint="CAST the expression in the query to the type that you want to receive",
        ) from None


def _encode_text(value: Value, oid: int, typmod: int = -1) -> bytes:
    if oid == BOOL and isinstance(value, int):
        return b"t" if value else b"f"
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if oid == NUMERIC and isinstance(value, (int, float)):
        return _text_of_decimal(_scaled(value, typmod)).encode()
    if isinstance(value, float):
        return (number_text(value) if oid == JSONB else _text_of_float(value)).encode()
    if isinstance(value, str) and oid in _MOMENTS:
        return _text_of_moment(value, _MOMENTS[oid]).encode("utf-8", "surrogateescape")
    if oid in ELEMENTS:
        return array_in_text(str(value), oid).encode()
    return str(value).encode("utf-8", "surrogateescape")


def _text_of_float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if 1e15 <= abs(value) < 1e16:  # PostgreSQL uses exponents from one digit earlier than Python.
        sign, digits = "-" if value < 0 else "", repr(abs(value)).replace(".", "").rstrip("0")
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e+15"
    return repr(value).removesuffix(".0")


def _scaled(value: Value, typmod: int) -> Decimal:
    """A stored numeric with trailing zeros up to its type's scale. A value with more digits, which earlier releases stored, stays."""
    number = decimal_of_text(str(value))
    if isinstance(value, float) and number.is_finite():
        # The text of a float has an exponent or, if it is whole, a zero after its point.
        number = Decimal(f"{number:f}".removesuffix(".0"))
    scale = scale_of_typmod(typmod)
    exponent = number.as_tuple().exponent
    if scale is None or not isinstance(exponent, int) or -exponent > scale:
        return number
    return number.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def _text_of_decimal(number: Decimal) -> str:
    if number.is_finite():
        return f"{number:f}"
    return "NaN" if number.is_nan() else "Infinity" if number > 0 else "-Infinity"


def _text_of_moment(text: str, kind: Kind) -> str:
    """A stored date or time as PostgreSQL prints it; text that is none stays as it is stored."""
    try:
        return shown_datetime(text, kind)
    except SqlError:
        return text


def _encode_binary(value: Value, oid: int, typmod: int) -> bytes:
    if oid in _INTEGERS:
        return _INTEGERS[oid].pack(_as_integer(value))
    if oid == NUMERIC:
        return _encode_numeric(_scaled(value, typmod) if isinstance(value, (int, float, str)) else None)
    if oid in _MOMENTS and oid != DATE:
        return struct.pack(">q", microseconds_of(_as_text(value), _MOMENTS[oid]))
    encoder = _BINARY.get(oid)
    if encoder is not None:
        return encoder(value)
    if oid in ELEMENTS:
        return encode_array(_as_text(value), oid)
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


def float_of_32_bits(number: float) -> float:
    """The float of 32 bits that is nearest to a number, as the float with its shortest decimal text: 0.3, not 0.30000001192092896. So it
    equals a `real` column's value, which has 64 bits.

    Raises:
        OverflowError: it is too large.
    """
    data = _FLOAT4.pack(number)
    (rounded,) = _FLOAT4.unpack(data)
    for digits in range(1, 10):
        found = float(f"{rounded:.{digits}g}")
        # A few digits may round up beyond the type's range.
        if (abs(found) <= _FLOAT4_MAX or digits > 7) and _FLOAT4.pack(found) == data:
            return found
    return float(rounded)


def _encode_numeric(number: Decimal | None) -> bytes:
    if number is None:
        raise TypeError("not a number")
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack(">hhHh", 0, 0, sign, 0)
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
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
    18: lambda value: (
        _encode_text(value, TEXT)[:1] or b"\0"
    ),  # "char" is one byte, by which SQLAlchemy recognizes columns that are not generated.
    BOOL: lambda value: b"\1" if _as_integer(value) else b"\0",
    BYTEA: _as_bytes,
    FLOAT4: lambda value: _FLOAT4.pack(_as_float(value)),
    FLOAT8: lambda value: _FLOAT8.pack(_as_float(value)),
    DATE: lambda value: struct.pack(">i", days_of(_as_text(value))),
    UUID: lambda value: uuid.UUID(_as_text(value)).bytes,
    JSONB: lambda value: b"\1" + _encode_text(value, TEXT),
}
