"""Converts values from one of PostgreSQL's types to another, as a cast does. Pure.

Values are those that SQLite stores: integers (also booleans), floats, text (also dates, times, UUIDs and JSON) and bytes. A numeric is an
integer, a float if that prints the same, or text. Source: PostgreSQL 15, the types' input functions and ``pg_cast``.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from decimal import Decimal

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.syntax.nodes import TypeName
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import read_moment, round_moment, shown
from triplicate.sql.pg.values.json_text import number_text
from triplicate.sql.pg.values.numeric_limits import EXACT, FLOAT_DIGITS, NUMBER, SCALE_MAX, decimal_of_text, result

INTEGER_RANGES = {
    types.INT2: (-(2**15), 2**15 - 1, "smallint"),
    types.INT4: (-(2**31), 2**31 - 1, "integer"),
    types.INT8: (-(2**63), 2**63 - 1, "bigint"),
    types.OID: (0, 2**32 - 1, "oid"),
}
MOMENTS = (types.DATE, types.TIME, types.TIMESTAMP, types.TIMESTAMPTZ)
FLOAT4_MAX = 3.4028235e38
NUMBERS = (types.INT2, types.INT4, types.INT8, types.FLOAT4, types.FLOAT8, types.NUMERIC)
INTEGERS = (types.INT2, types.INT4, types.INT8, types.OID)
TEXTS = (types.TEXT, types.VARCHAR, types.BPCHAR)
WRITTEN_OTHERWISE = (types.BOOL, types.FLOAT4, types.FLOAT8, types.NUMERIC, types.BYTEA, types.TIME, types.TIMESTAMP, types.TIMESTAMPTZ)
"""Types whose text differs from SQLite's text of the stored value."""
FORMAT_FEW = 5
"""Number of arguments of format() up to which they may have any length."""
FORMAT_ARGUMENT_MAX = 256 * 1024
"""Upper bound on the characters of each of more arguments. All are copied at once, and nothing else runs meanwhile."""
REGISTERED = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper")
"""Names of types for objects of the catalogue. Casts to them need the catalogue."""

_NAMES = {
    "int": types.INT4, "integer": types.INT4, "int4": types.INT4, "bigint": types.INT8, "int8": types.INT8, "smallint": types.INT2,
    "int2": types.INT2, "real": types.FLOAT4, "float4": types.FLOAT4, "double precision": types.FLOAT8, "float8": types.FLOAT8,
    "float": types.FLOAT8, "numeric": types.NUMERIC, "decimal": types.NUMERIC, "dec": types.NUMERIC, "text": types.TEXT,
    "name": types.TEXT, "varchar": types.VARCHAR, "character varying": types.VARCHAR, "char": types.BPCHAR, "character": types.BPCHAR,
    "bpchar": types.BPCHAR, "bool": types.BOOL, "boolean": types.BOOL, "date": types.DATE, "time": types.TIME,
    "timestamp": types.TIMESTAMP, "timestamptz": types.TIMESTAMPTZ, "datetime": types.TIMESTAMP, "uuid": types.UUID, "json": types.JSON,
    "jsonb": types.JSONB, "bytea": types.BYTEA, "blob": types.BYTEA, "oid": types.OID,
}  # fmt: skip
SHOWN = {
    types.INT2: "smallint", types.INT4: "integer", types.INT8: "bigint", types.FLOAT4: "real", types.FLOAT8: "double precision",
    types.NUMERIC: "numeric", types.TEXT: "text", types.VARCHAR: "character varying", types.BPCHAR: "character", types.BOOL: "boolean",
    types.DATE: "date", types.TIME: "time without time zone", types.TIMESTAMP: "timestamp without time zone",
    types.TIMESTAMPTZ: "timestamp with time zone", types.UUID: "uuid", types.JSON: "json", types.JSONB: "jsonb", types.BYTEA: "bytea",
    types.OID: "oid", types.UNKNOWN: "unknown",
}  # fmt: skip
"""The types' names in error messages."""
CAST_NAMES = {
    types.INT2: "int2", types.INT4: "int4", types.INT8: "int8", types.FLOAT4: "float4", types.FLOAT8: "float8", types.NUMERIC: "numeric",
    types.TEXT: "text", types.VARCHAR: "varchar", types.BPCHAR: "bpchar", types.BOOL: "bool", types.DATE: "date", types.TIME: "time",
    types.TIMESTAMP: "timestamp", types.TIMESTAMPTZ: "timestamptz", types.UUID: "uuid", types.JSON: "json", types.JSONB: "jsonb",
    types.BYTEA: "bytea", types.OID: "oid",
}  # fmt: skip
"""Maps a type to the name of a result column that is a cast to it. The name is also the suffix of the converting function."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SPECIAL = {"nan": "nan", "inf": "inf", "infinity": "inf", "+inf": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_BOOLEANS = {**dict.fromkeys(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"), 1),
             **dict.fromkeys(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"), 0)}  # fmt: skip
_INTEGER_DIGITS = 20
"""More than any integer has."""
_UUID = re.compile(r"\{?[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}\}?")


def type_of_name(name: TypeName) -> tuple[int, tuple[int, ...]]:
    """The type that a cast names, and its modifiers. The caller handles arrays.

    Raises:
        SqlError: 0A000 for a type of PostgreSQL that is not available, 42704 for an unknown type, 22023 and 42601 for invalid modifiers.
    """
    oid = _NAMES.get(name.name)
    if oid is None:
        if name.name in ("interval", "timetz", "money", "bit", "bit varying", "xml", "inet", "cidr", "point", "tsvector", *REGISTERED):
            raise SqlError("0A000", f"type {name.name} is not available", hint="Cast to text, or compute the value in the client.")
        raise SqlError("42704", f'type "{name.name}" does not exist')
    modifiers = name.modifiers
    if name.name == "float":
        oid = types.FLOAT4 if modifiers and modifiers[0] <= 24 else types.FLOAT8
        return oid, ()
    if oid == types.BPCHAR and not modifiers and name.name != "bpchar":
        modifiers = (1,)
    if oid in TEXTS and modifiers and modifiers[0] < 1:
        raise SqlError("22023", f"length for type {name.name} must be at least 1")
    if modifiers and oid not in (*TEXTS, *MOMENTS, types.NUMERIC):
        raise SqlError("42601", f'type modifier is not allowed for type "{name.name}"')
    if oid == types.NUMERIC and modifiers and not 1 <= modifiers[0] <= 1000:
        raise SqlError("22023", f"NUMERIC precision {modifiers[0]} must be between 1 and 1000")
    if oid == types.NUMERIC and len(modifiers) > 1 and abs(modifiers[1]) > SCALE_MAX:
        raise SqlError("22023", f"NUMERIC scale {modifiers[1]} must be between -{SCALE_MAX} and {SCALE_MAX}")
    return oid, modifiers


_CASTS = {
    types.DATE: (types.TIMESTAMP, types.TIMESTAMPTZ),
    types.TIMESTAMP: (types.DATE, types.TIME, types.TIMESTAMPTZ),
    types.TIMESTAMPTZ: (types.DATE, types.TIME, types.TIMESTAMP),
    types.BOOL: INTEGERS,
    # Here an element of jsonb has the type json, so both types have the same casts.
    types.JSON: (types.JSONB, types.BOOL, *NUMBERS),
    types.JSONB: (types.JSON, types.BOOL, *NUMBERS),
}


def has_cast(source: int, target: int) -> bool:
    """Whether PostgreSQL has a cast from `source` to `target`. Integers of all widths are one type here."""
    if source == target or source not in SHOWN or source in TEXTS or target in TEXTS:
        return True
    if source in NUMBERS or source == types.OID:
        return target in NUMBERS or (source in INTEGERS and target in (types.BOOL, types.OID))
    return target in _CASTS.get(source, ())


def convert(value: Value, source: int | None, target: int, modifiers: tuple[int, ...] = ()) -> Value:
    """Convert a value to the target type; NULL stays NULL.

    Args:
        source: the value's type, or None. It distinguishes a boolean from an integer and a numeric from a float.

    Raises:
        SqlError: 22P02, 22007 or 22008 for text that is not of the type, 22003 for a value out of range, 42846 if there is no such cast.
    """
    if value is None:
        return None
    converter = _CONVERTERS.get(target)
    if converter is None:
        raise SqlError("42846", f"cannot cast to type oid {target}")
    return converter(value, source, target, modifiers)


def declared_name(oid: int | None) -> str:
    """The type that a column with such values declares; empty for an undetermined one."""
    if oid in (types.BPCHAR, types.UNKNOWN):
        return "text"
    return "bigint" if oid == types.OID else SHOWN.get(oid or 0, "")


def _type_of_value(value: Value) -> int:
    return types.oid_of_value(value) or types.TEXT


def _bad(target: int, value: Value) -> SqlError:
    return SqlError("22P02", f'invalid input syntax for type {SHOWN[target]}: "{_shown(value)}"')


def _shown(value: Value) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _no_cast(source: int | None, target: int) -> SqlError:
    name = SHOWN.get(source or 0, "bytea")
    return SqlError("42846", f"cannot cast type {name} to {SHOWN[target]}", hint="Cast to text first.")


def _to_integer(value: Value, source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    low, high, name = INTEGER_RANGES[target]
    if isinstance(value, str):
        if source == types.NUMERIC:
            return _to_integer(_half_away(decimal_of(value)), None, target, ())
        stripped = value.strip(" \t\n\r\f\v")
        if not _INTEGER.fullmatch(stripped):
            raise _bad(target, value)
        number = int(stripped) if len(stripped) < 100 else high + 1
        if not low <= number <= high:
            raise SqlError("22003", f'value "{_shown(value)}" is out of range for type {name}')
        return number
    if isinstance(value, bytes):
        raise _no_cast(types.BYTEA, target)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SqlError("22003", f"{name} out of range")
        value = _half_away(Decimal(repr(value))) if source == types.NUMERIC else round(value)
    if value is None or not low <= value <= high:
        raise SqlError("22003", f"{name} out of range")
    return value


def _half_away(number: Decimal) -> int:
    if not number.is_finite():
        raise SqlError("22003", "cannot convert NaN or infinity to an integer")
    if number.adjusted() >= _INTEGER_DIGITS:
        return 2**63  # It is out of range, as any number with these digits is.
    return int(number.quantize(Decimal(1), context=EXACT))


def _to_float(value: Value, _source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    if isinstance(value, bytes):
        raise _no_cast(types.BYTEA, target)
    if isinstance(value, str):
        stripped = value.strip(" \t\n\r\f\v")
        special = _SPECIAL.get(stripped.lower())
        if special is None and not NUMBER.fullmatch(stripped):
            raise _bad(target, value)
        return types.float_in_range(float(special or stripped), target, special or stripped)
    assert value is not None, "NULL is converted by the caller"
    return types.float_in_range(float(value), target, value)


def decimal_of(value: Value, target: int = types.NUMERIC) -> Decimal:
    """A stored number as an exact decimal.

    Raises:
        SqlError: 22P02 for text that is not a number, 22003 for one with more digits than a numeric may have.
    """
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else Decimal(value)
    if isinstance(value, str):
        stripped = value.strip(" \t\n\r\f\v")
        special = _SPECIAL.get(stripped.lower())
        if special is None and not NUMBER.fullmatch(stripped):
            raise _bad(target, value)
        return Decimal(special) if special else decimal_of_text(stripped)
    raise _no_cast(types.BYTEA, target)


def value_of_decimal(number: Decimal) -> Value:
    """A numeric as it is stored: an integer, a float if that prints the same, else text.

    Raises:
        SqlError: 0A000 for NaN, 22003 for more digits before the point than a numeric may have.
    """
    if number.is_nan():
        raise SqlError("0A000", "the result is NaN, which is not available as a numeric", hint="NULL stands for no number.")
    number = result(number)
    if not number.is_finite():
        return float(number)
    if number == number.to_integral_value() and -(2**63) <= number < 2**63:
        return int(number)
    as_float = float(number)
    if math.isfinite(as_float) and Decimal(repr(as_float)) == number:
        return as_float
    # Each number has only one text, so that equal numbers compare equal.
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _fits(value: Value, precision: int, scale: int = 0) -> bool:
    """Whether a number is stored as it is in a column of this precision: the quick way for most rows of a bulk load."""
    if not 0 <= scale <= precision <= FLOAT_DIGITS:
        return False
    if type(value) is float and not value.is_integer():
        return value == round(value, scale) and abs(value) < 10 ** (precision - scale)
    return type(value) is int and abs(value) < 10 ** (precision - scale)


def _to_numeric(value: Value, source: int | None, target: int, modifiers: tuple[int, ...]) -> Value:
    if modifiers and source != types.FLOAT4 and _fits(value, *modifiers):
        return value
    number = decimal_of(value, target)
    if number.is_nan():
        raise SqlError("0A000", "NaN is not available as a numeric", hint="NULL stands for no number.")
    if source == types.FLOAT8 and isinstance(value, float) and math.isfinite(value):
        number = Decimal(f"{value:.15g}")
    elif source == types.FLOAT4 and isinstance(value, float) and math.isfinite(value):
        number = Decimal(f"{value:.6g}")
    if modifiers and number.is_finite():
        precision, scale = modifiers[0], modifiers[1] if len(modifiers) > 1 else 0
        number = number.quantize(Decimal(1).scaleb(-scale), context=EXACT)
        if abs(number) >= Decimal(10) ** (precision - scale):
            raise SqlError(
                "22003",
                "numeric field overflow",
                detail=f"With precision {precision} and scale {scale} the rounded value must be below 10^{precision - scale}.",
            )
    return value_of_decimal(number)


def stored_numeric(value: Value) -> Value:
    """A numeric as a column stores it.

    Raises:
        SqlError: 22003 for one with more digits than can be stored exactly.
    """
    if isinstance(value, str):
        raise SqlError(
            "22003",
            f"the numeric {value[:60]} has more digits than can be stored exactly",
            hint="numeric keeps integers of 64 bits and numbers of up to 15 digits; use a column of type text for longer ones",
        )
    return value


def _to_bool(value: Value, source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    if isinstance(value, str):
        found = _BOOLEANS.get(value.strip(" \t\n\r\f\v").lower())
        if found is None:
            raise _bad(target, value)
        return found
    if isinstance(value, int):
        return int(value != 0)
    raise _no_cast(types.FLOAT8 if isinstance(value, float) else types.BYTEA, target)


def text_of(value: Value, source: int | None) -> str:
    """A value as PostgreSQL prints it."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if source == types.BOOL and isinstance(value, int):
        return "true" if value else "false"
    if isinstance(value, float):
        return text_of_float(value, source)
    if isinstance(value, str) and source in MOMENTS:
        return shown(value, source)
    return str(value)


def text_of_float(value: float, source: int | None = None) -> str:
    """The shortest text that reads as the same number, in PostgreSQL's form."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if source == types.NUMERIC:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    # A column `real` has 64 bits, and so have sums of it.
    shown = repr(types.float_of_32_bits(value) if source == types.FLOAT4 and abs(value) < FLOAT4_MAX else value)
    number = Decimal(shown)
    digits = number.normalize().as_tuple().digits
    exponent = number.adjusted() if value else 0
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if -4 <= exponent < (6 if source == types.FLOAT4 else 15):
        return sign + f"{abs(number):f}".removesuffix(".0")
    mantissa = "".join(map(str, digits))
    point = "." if len(mantissa) > 1 else ""
    return f"{sign}{mantissa[0]}{point}{mantissa[1:]}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _to_text(value: Value, source: int | None, target: int, modifiers: tuple[int, ...]) -> Value:
    text = text_of(value, source)
    if modifiers:
        text = text[: modifiers[0]]
    # As a column stores it: PostgreSQL ignores blanks at the end of a char(n) in comparisons.
    return text.rstrip(" ") if target == types.BPCHAR else text


def _to_moment(value: Value, source: int | None, target: int, modifiers: tuple[int, ...]) -> Value:
    if not isinstance(value, str):
        raise _no_cast(source or _type_of_value(value), target)
    if target == types.TIME and source in (types.TIMESTAMP, types.TIMESTAMPTZ):
        value = value[value.find(" ") + 1 :].removesuffix("+00:00")
    moment = read_moment(value, target)
    return round_moment(moment, target, modifiers[0]) if modifiers else moment


def _to_uuid(value: Value, _source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    if not isinstance(value, str):
        raise _no_cast(types.BYTEA if isinstance(value, bytes) else types.INT8, target)
    stripped = value.strip()
    if not _UUID.fullmatch(stripped) or (stripped[0] == "{") != (stripped[-1] == "}"):
        raise _bad(target, value)
    return str(uuid.UUID(stripped))


def _to_json(value: Value, source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    if isinstance(value, int | float) and source in (types.JSON, types.JSONB):
        return number_text(value)  # A column stores JSON that is only a number as one.
    if not isinstance(value, str):
        raise _no_cast(types.BYTEA if isinstance(value, bytes) else types.INT8, target)
    try:
        return types.value_of_text(value, target)
    except (ValueError, RecursionError):
        raise SqlError("22P02", f'invalid input syntax for type json: "{_shown(value)}"') from None


def _to_bytes(value: Value, source: int | None, target: int, _modifiers: tuple[int, ...]) -> Value:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise _no_cast(source or types.INT8, target)
    if value.startswith("\\x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise _bad(target, value) from None
    if re.search(r"\\(?!\\|[0-3][0-7]{2})", value.replace("\\\\", "")):
        raise _bad(target, value)
    return re.sub(rb"\\(\\|[0-3][0-7]{2})", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), value.encode())


_CONVERTERS: dict[int, Callable[[Value, int | None, int, tuple[int, ...]], Value]] = {
    **dict.fromkeys(INTEGERS, _to_integer),
    **dict.fromkeys((types.FLOAT4, types.FLOAT8), _to_float),
    **dict.fromkeys(TEXTS, _to_text),
    **dict.fromkeys(MOMENTS, _to_moment),
    **dict.fromkeys((types.JSON, types.JSONB), _to_json),
    types.NUMERIC: _to_numeric,
    types.BOOL: _to_bool,
    types.UUID: _to_uuid,
    types.BYTEA: _to_bytes,
}
