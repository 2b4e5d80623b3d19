"""Columns of tables: Spark's type for each declared type, and the conversion of stored values to the requested type. Pure.

A SQLite column can hold any value, and rows of earlier releases may. A column whose values have the stored forms of `docs/sql.md` is
converted as a whole; otherwise each value is converted by itself, so that the first one that does not fit can be named.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from triplicate.sql import parse_declared

SPARK_DIGITS = 38
"""Maximum precision of Spark's decimals."""
_UTC_SUFFIX = "+00:00"
_TYPES = {"boolean": "BOOLEAN", "integer": "LONG", "double precision": "DOUBLE", "bytea": "BINARY"}
_MOMENTS = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamp with time zone": "TIMESTAMP_LTZ"}
_NUMERIC_OID = 1700
_OF_OIDS = {
    16: "BOOLEAN",
    17: "BINARY",
    20: "LONG",
    21: "LONG",
    23: "LONG",
    700: "DOUBLE",
    701: "DOUBLE",
    1082: "DATE",
    1114: "TIMESTAMP_NTZ",
    1184: "TIMESTAMP_LTZ",
}
# Beyond these limits a product with a power of ten is not exact.
_EXACT_INTEGERS = 2.0**53
_EXACT_SCALE = 22
_UNFIT = (ValueError, TypeError, ArithmeticError)
"""Errors for values that a type cannot hold; those of Arrow are subclasses."""

Misfit = Callable[[int, Any], Exception]
"""The error for a row's value that does not fit."""


def spark_type(declared: str, *, texts: bool) -> str:
    """Spark's type for a declared column type.

    A numeric without precision is a string: a decimal has a fixed number of digits behind the point, and at most 38 in all.

    Args:
        texts: deliver dates, times and numerics as the database stores them, as earlier releases do.
    """
    parsed = parse_declared(declared)
    kind = parsed.kind.value
    if kind == "numeric" and not texts and parsed.precision and 0 <= parsed.scale <= parsed.precision <= SPARK_DIGITS:
        return f"DECIMAL({parsed.precision},{parsed.scale})"
    return _TYPES.get(kind) or (not texts and _MOMENTS.get(kind)) or "STRING"


def type_of_result(oid: int, precision: int, scale: int) -> str:
    """Spark's type for a column of a query's result, by PostgreSQL's oid of its type."""
    if oid == _NUMERIC_OID and precision and 0 <= scale <= precision <= SPARK_DIGITS:
        return f"DECIMAL({precision},{scale})"
    return _OF_OIDS.get(oid, "STRING")


def column_of(kind: pa.DataType, values: Sequence[Any], misfit: Misfit) -> pa.Array:
    """The stored values as a column of a type.

    Raises:
        The result of `misfit`, for the first value that does not fit.
    """
    try:
        return _whole(kind, values)
    except _UNFIT:
        converted = [_fitting(kind, row, value, misfit) for row, value in enumerate(values)]
    try:
        return pa.array(converted, kind)
    except _UNFIT:
        for row, value in enumerate(converted):
            try:
                pa.scalar(value, kind)
            except _UNFIT:
                raise misfit(row, values[row]) from None
        raise


def columns_of_page(schema: pa.Schema, rows: int, text: bytes) -> list[pa.Array]:
    """Columns of a page of a table's content (`table_content.ContentPage`), which has the columns of `schema`, and no others.

    Raises:
        ValueError, TypeError, ArithmeticError: a value has not the stored form of its column's type, or may be a blob.
    """
    if b",X'" in text or b"\nX'" in text or text.startswith(b"X'"):
        raise ValueError("a blob may be in the page, or a text that looks like one")
    from pyarrow import csv  # Only this kind of read needs it.

    table = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=[str(place) for place in range(len(schema))]),
        csv.ParseOptions(quote_char="'", newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={str(place): _text_type(field.type) for place, field in enumerate(schema)},
            null_values=["NULL"],
            true_values=["1"],
            false_values=["0"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    if table.num_rows != rows:
        raise ValueError(f"the page has {table.num_rows} lines, of {rows} rows")
    return [_whole(field.type, column.combine_chunks()) for field, column in zip(schema, table.columns, strict=True)]


def _text_type(kind: pa.DataType) -> pa.DataType:
    """The type in which literals of a column are read, before they are converted."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    return pa.bool_() if pa.types.is_boolean(kind) else pa.string()


def _as(values: Sequence[Any] | pa.Array, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _whole(kind: pa.DataType, values: Sequence[Any] | pa.Array) -> pa.Array:
    if pa.types.is_date(kind):
        return _as(values, pa.string()).cast(kind)
    if pa.types.is_timestamp(kind):
        return _without_zone(_as(values, pa.string())).cast(pa.timestamp("us")).cast(kind)
    if pa.types.is_decimal(kind):
        return _decimals(kind, values)
    if isinstance(values, pa.Array):
        return values.cast(kind)
    if pa.types.is_integer(kind):
        found = pa.array(values)  # With a type Arrow would cut the fractions of floats.
        if not pa.types.is_integer(found.type) and found.null_count < len(found):
            raise ValueError(f"{found.type} is not an integer")
        return found.cast(kind)
    return pa.array(values, kind)


def _without_zone(texts: pa.Array) -> pa.Array:
    from pyarrow import compute as pc  # It takes longer to load than the rest of Arrow.

    return pc.if_else(pc.ends_with(texts, _UTC_SUFFIX), pc.utf8_slice_codeunits(texts, 0, -len(_UTC_SUFFIX)), texts)


def _decimals(kind: pa.Decimal128Type, values: Sequence[Any] | pa.Array) -> pa.Array:
    """Integers and floats that are the nearest to numbers of the type's scale.

    Raises:
        ValueError, TypeError: there is another value, or one with more digits than a float holds.
    """
    numbers = _as(values, pa.float64())
    plain = numbers.fill_null(0.0).to_numpy()
    unit = 10.0**kind.scale
    with np.errstate(over="ignore", invalid="ignore"):
        digits = np.rint(plain * unit)
        bound = min(_EXACT_INTEGERS, 10.0**kind.precision)
        if kind.scale > _EXACT_SCALE or not (np.abs(digits) < bound).all() or not (digits / unit == plain).all():
            raise ValueError("not exact as floats")
    nulls = numbers.is_null().to_numpy(zero_copy_only=False)
    unscaled = pa.array(digits.astype(np.int64), mask=nulls).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(kind, len(unscaled), unscaled.buffers())


def _fitting(kind: pa.DataType, row: int, value: Any, misfit: Misfit) -> Any:
    try:
        return None if value is None else _converted(kind, value)
    except _UNFIT:
        raise misfit(row, value) from None


def _converted(kind: pa.DataType, value: Any) -> Any:
    """One value in the type. Raises one of `_UNFIT`: it does not fit."""
    if pa.types.is_string(kind):
        return value.decode() if isinstance(value, bytes) else str(value)
    if pa.types.is_boolean(kind) and value in (0, 1):
        return bool(value)
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return float(value)
    if pa.types.is_integer(kind) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return int(value)
    if pa.types.is_binary(kind) and isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return _moment(kind, value)
    if pa.types.is_decimal(kind):
        return _decimal(kind, value)
    raise ValueError(value)


def _moment(kind: pa.TimestampType, text: str) -> dt.datetime:
    """A timestamp of any ISO form, as earlier releases stored them. One without an offset is in UTC."""
    moment = dt.datetime.fromisoformat(text)
    if re.search(r"[.,]\d{7}", text) or (kind.tz is None and moment.utcoffset()):
        raise ValueError(text)  # Python cuts further digits of a fraction.
    return moment.replace(tzinfo=None) if kind.tz is None else moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _decimal(kind: pa.Decimal128Type, value: Any) -> Decimal:
    number = Decimal(repr(value) if isinstance(value, float) else value)
    with localcontext(prec=2 * SPARK_DIGITS):
        scaled = number.quantize(Decimal(1).scaleb(-kind.scale))
    if scaled != number:
        raise ValueError(value)
    return scaled
