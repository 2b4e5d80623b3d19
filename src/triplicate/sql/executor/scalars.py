"""Scalar functions and aggregates of PostgreSQL that SQLite lacks or has with another meaning.

Translated statements call them (`triplicate.sql.pg.translate`), and views and triggers may. The definitions of tables and indexes may not
(`stored_calls`), so that plain SQLite can read and change tables. All are deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.value_checks import check_aggregate
from triplicate.sql.executor.number_scalars import DECIMALS, NUMBER_SCALARS, divide, division_by_zero
from triplicate.sql.executor.scalar_function import Scalar
from triplicate.sql.executor.text_scalars import TEXT_SCALARS, format_text
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import CAST_NAMES, convert, decimal_of, stored_numeric, value_of_decimal
from triplicate.sql.pg.values.date_functions import date_part, date_trunc, difference, shifted


def _cast(target: int, value: Value, source: Value = 0, *modifiers: Any) -> Value:
    return convert(value, int(source or 0) or None, target, modifiers)


def _divisor(value: Value, dividend: Value) -> Value:
    """The right side of a division. With NULL on the left the result is NULL for any right side."""
    if dividend is not None and value == 0 and not isinstance(value, (str, bytes)):
        raise division_by_zero()
    return value


def _limit(value: Any, is_offset: Any) -> Value:
    """The count of LIMIT or OFFSET; NULL is none."""
    if value is None:
        return 0 if is_offset else -1
    if not isinstance(value, int):
        raise SqlError("22P02", f"{'OFFSET' if is_offset else 'LIMIT'} needs an integer, not {value!r:.40}")
    if value < 0:
        raise SqlError("2201X" if is_offset else "2201W", f"{'OFFSET' if is_offset else 'LIMIT'} must not be negative")
    return value


def _single(count: Value, value: Value) -> Value:
    """The value of a subquery that is used as an expression."""
    if isinstance(count, int) and count > 1:
        raise SqlError("21000", "more than one row returned by a subquery used as an expression")
    return value


def _stored_numeric(value: Value, source: Value = 0, *modifiers: Any) -> Value:
    return stored_numeric(_cast(types.NUMERIC, value, source, *modifiers))


def _extreme(pick: Callable[..., Any], *values: Value) -> Value:
    """The greatest or least argument that is not NULL."""
    known: list[Any] = [value for value in values if value is not None]
    try:
        found: Value = pick(known) if known else None
    except TypeError:
        raise SqlError("42804", "greatest() and least() need values of one type") from None
    return found


class _NumericSum:
    """sum() of numerics, exactly."""

    def __init__(self) -> None:
        self._sum: Decimal | None = None
        self._count = 0

    def step(self, value: Value) -> None:
        if value is not None:
            self._count += 1
            self._sum = DECIMALS.add(self._sum or Decimal(0), decimal_of(value))

    def final(self) -> Value:
        return None if self._sum is None else value_of_decimal(self._sum)


class _NumericAverage(_NumericSum):
    """avg() of numerics, with as many digits as a division."""

    def final(self) -> Value:
        return None if self._sum is None else value_of_decimal(divide(self._sum, Decimal(self._count)))


class _DistinctJoin:
    """string_agg(DISTINCT …). The values are in order, as in PostgreSQL, which sorts them to find equal ones."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str]] = set()
        self._is_descending = False
        self._size = 0

    def step(self, value: Value, separator: Value, is_descending: Value) -> None:
        self._is_descending = bool(is_descending)
        if value is None:
            return
        found = (str(value), "" if separator is None else str(separator))
        if found not in self._found:
            self._size = check_aggregate(self._size + len(found[0]) + len(found[1]))
            self._found.add(found)

    def final(self) -> Value:
        if not self._found:
            return None
        (first, _), *others = sorted(self._found, reverse=self._is_descending)
        return first + "".join(separator + value for value, separator in others)


def _to_timestamp(seconds: Any) -> Value:
    return shifted(float(seconds))


_DATE_SCALARS: dict[str, Scalar] = {
    "date_part": Scalar(date_part, (3,)),
    "date_trunc": Scalar(date_trunc, (3,)),
    "date_add": Scalar(lambda date, days, sign: difference(date, int(days) * int(sign)), (3,)),
    "date_difference": Scalar(difference, (2,)),
    "to_timestamp": Scalar(_to_timestamp, (1,)),
}


def register_scalars(connection: apsw.Connection) -> None:
    """Register the functions on a connection."""

    def add(name: str, function: Callable[..., Value], count: int) -> None:
        connection.create_scalar_function(f"triplicate_{name}", function, count, deterministic=True)

    for name, scalar in (*TEXT_SCALARS.items(), *NUMBER_SCALARS.items(), *_DATE_SCALARS.items()):
        for count in scalar.argument_counts:
            add(name, scalar.call, count)
    for oid, name in CAST_NAMES.items():
        for count in range(2, 5 if oid == types.NUMERIC else 4):
            add(f"to_{name}", partial(_cast, oid), count)
    make_sum: Any = _NumericSum
    connection.create_aggregate_function("triplicate_numeric_sum", make_sum, 1)
    make_average: Any = _NumericAverage
    connection.create_aggregate_function("triplicate_numeric_avg", make_average, 1)
    make_join: Any = _DistinctJoin
    connection.create_aggregate_function("triplicate_join_distinct", make_join, 3)
    add("divisor", _divisor, 2)
    add("limit", _limit, 2)
    add("single", _single, 2)
    for count in range(2, 5):
        add("stored_numeric", _stored_numeric, count)
    add("format", format_text, -1)
    add("greatest", partial(_extreme, max), -1)
    add("numeric_greatest", partial(_extreme, partial(max, key=decimal_of)), -1)
    add("numeric_least", partial(_extreme, partial(min, key=decimal_of)), -1)
    add("least", partial(_extreme, min), -1)
