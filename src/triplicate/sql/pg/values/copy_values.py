"""The values of COPY's fields, as those of parameters and results, converted by column where all rows allow it. Pure.

The fields of a column are converted together. If that fails, the rows are converted one by one, which finds the first error and its place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import InvalidOperation
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Row, Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.copy_lines import CopyPlace, CopyRows
from triplicate.sql.pg.values.numeric_limits import FLOAT_DIGITS

_INTEGERS = {types.INT2: 15, types.INT4: 31, types.INT8: 63}
"""Maps a type of integers to the bits of its largest value."""
_TEXTS = (types.TEXT, types.VARCHAR, types.BPCHAR)
_LAYOUTS = {2: "h", 4: "i", 8: "q"}
"""Maps the bytes of an integer to its format in `struct`."""
_BOOLEANS = {"t": 1, "f": 0, "true": 1, "false": 0, "1": 1, "0": 0}
_PLAIN = str.maketrans("", "", "0123456789.-")
_REFUSALS = (ValueError, KeyError, InvalidOperation, OverflowError, struct.error, SqlError)
_NARROWER = {(types.INT8, 2): types.INT2, (types.INT8, 4): types.INT4, (types.FLOAT8, 4): types.FLOAT4}
"""The types that clients send in binary format for columns of the types here: all integers are int8 here, all floats float8."""


class RowConverter:
    """Converts the fields of rows.

    Args:
        columns: names of the columns. oids: their types.
    """

    def __init__(self, place: CopyPlace, columns: Sequence[str], oids: Sequence[int], *, is_binary: bool, delimiter: str = "\t") -> None:
        self._place = place
        self._columns = columns
        self._oids = oids
        self._is_binary = is_binary
        self._delimiter = delimiter
        converters = [_binary_column(oid) if is_binary else _text_column(oid) for oid in oids]
        self._converters: list[Callable[[Sequence[Any]], Sequence[Value]]] = converters

    def convert(self, found: CopyRows) -> Iterable[Sequence[Value]]:
        """The values of each row.

        Raises:
            SqlError: 22P04 for a row with too few or too many fields; as `types.decode_parameter` for a field that is not of its type;
                the error of the data after the rows.
        """
        values = self._values(found)
        if found.error is not None:
            raise found.error
        return values

    def _values(self, found: CopyRows) -> Sequence[Sequence[Value]]:
        rows = found.rows
        if set(map(len, rows)) == {len(self._oids)}:
            try:
                columns = [_converted(column, convert) for column, convert in zip(zip(*rows, strict=True), self._converters, strict=True)]
            except _REFUSALS:
                pass  # The conversion row by row raises the error, with its place.
            else:
                return list(zip(*columns, strict=True))
        return [self._row(row, line) for row, line in zip(rows, found.lines, strict=True)]

    def _row(self, row: Sequence[str | bytes | None], line: int) -> list[Value]:
        if len(row) > len(self._oids):
            raise self._place.error("22P04", "extra data after last expected column", line, shown=self._shown_row(row))
        values: list[Value] = []
        for index, (name, oid) in enumerate(zip(self._columns, self._oids, strict=True)):
            if index == len(row):
                raise self._place.error("22P04", f'missing data for column "{name}"', line, shown=self._shown_row(row))
            field = row[index]
            try:
                values.append(self._value(field, oid))
            except SqlError as error:
                raise self._place.mark(error, line, column=name, shown=field if isinstance(field, str) else None) from None
        return values

    def _value(self, field: str | bytes | None, oid: int) -> Value:
        if isinstance(field, bytes):
            return types.decode_parameter(field, _NARROWER.get((oid, len(field)), oid), True)
        return types.decode_parameter(None if field is None else field.encode(), oid, False)

    def _shown_row(self, row: Sequence[str | bytes | None]) -> str:
        return self._delimiter.join(["" if field is None else str(field) for field in row])


def _converted(column: Sequence[Any], convert: Callable[[Sequence[Any]], Sequence[Value]]) -> Sequence[Value]:
    if None not in column:
        return convert(column)
    values = iter(convert([field for field in column if field is not None]))
    return [None if field is None else next(values) for field in column]


def _text_column(oid: int) -> Callable[[Sequence[str]], Sequence[Value]]:
    """A function that converts the texts of a column of this type. It raises one of `_REFUSALS` where a field may not be of the type."""
    if oid in _TEXTS:
        return _unchanged
    if oid in _INTEGERS:
        return _integers(_INTEGERS[oid])
    if oid == types.FLOAT8:
        return _floats
    if oid == types.BOOL:
        return lambda column: [_BOOLEANS[field] for field in column]
    if oid == types.NUMERIC:
        return _numerics
    return lambda column: [types.decode_parameter(field.encode(), oid, False) for field in column]


def _unchanged(column: Sequence[str]) -> Sequence[Value]:
    return column


def _integers(bits: int) -> Callable[[Sequence[str]], Sequence[Value]]:
    high = 2**bits - 1

    def convert(column: Sequence[str]) -> Sequence[Value]:
        _check_plain(column)
        values = list(map(int, column))
        if values and (max(values) > high or min(values) < -high - 1):
            raise ValueError("out of range")
        return values

    return convert


def _check_plain(column: Sequence[str]) -> None:
    """Check numbers for characters that Python accepts and PostgreSQL does not. Raises ValueError."""
    joined = "".join(column)
    if "_" in joined or not joined.isascii():
        raise ValueError("not a number")


def _floats(column: Sequence[str]) -> Sequence[Value]:
    _check_plain(column)
    values = list(map(float, column))
    if not all(map(math.isfinite, values)):
        raise ValueError("not finite")
    if not all(values) and any(map(types.SIGNIFICANT.match, {field for field, value in zip(column, values, strict=True) if not value})):
        raise ValueError("nearer to zero than a float can be")
    return values


def _numerics(column: Sequence[str]) -> Sequence[Value]:
    joined = "".join(column)
    if joined.isascii() and joined.isdigit():
        return _integers(_INTEGERS[types.INT8])(column)
    if max(map(len, column), default=0) <= FLOAT_DIGITS and not joined.translate(_PLAIN):
        return [int(value) if value.is_integer() else value for value in map(float, column)]
    return [types.value_of_text(field, types.NUMERIC) for field in column]


def _binary_column(oid: int) -> Callable[[Sequence[bytes]], Sequence[Value]]:
    """As `_text_column`, for the binary format."""
    if oid == types.INT8:
        return _binary_integers
    if oid in _TEXTS:
        return _binary_texts
    return lambda column: [types.decode_parameter(field, _NARROWER.get((oid, len(field)), oid), True) for field in column]


def _binary_integers(column: Sequence[bytes]) -> Sequence[Value]:
    (size,) = set(map(len, column)) or {8}
    return struct.unpack(f">{len(column)}{_LAYOUTS[size]}", b"".join(column))


def _binary_texts(column: Sequence[bytes]) -> Sequence[Value]:
    values = [field.decode() for field in column]
    if b"\0" in b"".join(column):
        raise ValueError("a character with code zero")
    return values


def shown_rows(rows: Sequence[Row], oids: Sequence[int], typmods: Sequence[int]) -> list[tuple[str | None, ...]]:
    """The texts of the values of rows, as in results.

    Raises:
        SqlError: 22003 for an integer overflow.
    """
    columns = [_shown(column, oid, typmod) for column, oid, typmod in zip(zip(*rows, strict=True), oids, typmods, strict=True)]
    return list(zip(*columns, strict=True))


def _shown(column: Sequence[Value], oid: int, typmod: int) -> Sequence[str | None]:
    kinds = set(map(type, column))
    if oid in _INTEGERS and kinds == {int}:
        return list(map(str, column))
    if oid in _TEXTS and kinds == {str}:
        return [str(value) for value in column]
    check_integers(column, oid)
    encoded = [types.encode_value(value, oid, False, typmod) for value in column]
    return [None if data is None else data.decode("utf-8", "surrogateescape") for data in encoded]


def check_integers(column: Iterable[Value], oid: int) -> None:
    """Raises SqlError 22003 if an integer has overflowed, which SQLite converts to a float."""
    if oid in _INTEGERS and any(type(value) is float and abs(value) >= 2.0**63 for value in column):
        raise SqlError("22003", "bigint out of range", hint="Cast one side to numeric or double precision.")
