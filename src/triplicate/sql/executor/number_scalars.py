"""Scalar functions of numbers, as PostgreSQL has them. All are deterministic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, DecimalException, DivisionByZero
from functools import partial
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.executor.scalar_function import Scalar
from triplicate.sql.pg.values.conversions import decimal_of, value_of_decimal
from triplicate.sql.pg.values.numeric_limits import DIGITS_AFTER, EXACT, ROUNDED_SCALE_MAX, overflow

DECIMALS = Context(prec=300_000, rounding=ROUND_HALF_UP, Emax=200_000, Emin=-200_000)
"""Sums, products and remainders of two numerics are exact. A division would make all of these digits."""


def division_by_zero() -> SqlError:
    return SqlError("22012", "division by zero")


def _quotient(left: Any, right: Any) -> Value:
    """Division as in SQLite: integers are truncated towards zero."""
    if right == 0:
        raise division_by_zero()
    if isinstance(left, int) and isinstance(right, int):
        whole = abs(left) // abs(right)
        found = whole if (left < 0) == (right < 0) else -whole
        if found >= 2**63:
            raise SqlError("22003", "bigint out of range")
        return found
    return float(left) / float(right)


def _whole_remainder(left: Any, right: Any) -> Value:
    if right == 0:
        raise division_by_zero()
    rest = abs(int(left)) % abs(int(right))
    return -rest if left < 0 else rest


def _step(value: Any) -> Value:
    if value == 0:
        raise SqlError("22023", "step size cannot equal zero")
    found: Value = value
    return found


def _numeric(operation: Callable[[Decimal, Decimal], Decimal], left: Value, right: Value) -> Value:
    try:
        return value_of_decimal(operation(decimal_of(left), decimal_of(right)))
    except DivisionByZero:
        raise division_by_zero() from None
    except DecimalException:
        raise overflow() from None


def _numeric_order(left: Any, right: Any) -> Value:
    """-1, 0 or 1: numbers as SQLite keeps them, or texts of more digits."""
    if not isinstance(left, str) and not isinstance(right, str):
        return int(left > right) - int(left < right)
    one, other = decimal_of(left), decimal_of(right)
    return (one > other) - (one < other)


def _numeric_text(value: Value, scale: Any) -> Value:
    """A numeric with zeros appended up to `scale` fractional digits."""
    number = decimal_of(value)
    return f"{number:f}" if not number.is_finite() or _scale(number) >= scale else f"{number:.{min(int(scale), DIGITS_AFTER)}f}"


def _whole(value: Value) -> Value:
    """The result of an operation on integers, which SQLite makes a float when it exceeds 64 bits."""
    if type(value) is float:
        raise SqlError("22003", "bigint out of range", hint="Cast one side to numeric or double precision.")
    return value


def _float(operation: Callable[[float, float], float], left: Any, right: Any) -> Value:
    one, other = float(left), float(right)
    try:
        found = operation(one, other)
    except ZeroDivisionError:
        raise division_by_zero() from None
    if math.isnan(found):
        raise SqlError("0A000", "the result is NaN, which cannot be stored", hint="NULL stands for no number.")
    if math.isinf(found) and math.isfinite(one) and math.isfinite(other):
        raise SqlError("22003", "value out of range: overflow")
    is_product = operation is operator.mul and other != 0
    if found == 0 and one != 0 and (is_product or (operation is operator.truediv and math.isfinite(other))):
        raise SqlError("22003", "value out of range: underflow")
    return found


def divide(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise division_by_zero()
    if not left.is_finite() or not right.is_finite():
        return DECIMALS.divide(left, right)
    quotient = Context(prec=60).divide(left, right)
    # At least 16 significant digits, as in PostgreSQL, which counts groups of four digits before the point.
    weight = quotient.adjusted() // 4 if quotient else 0
    first, second = _leading(left), _leading(right)
    if quotient:
        weight = left.adjusted() // 4 - right.adjusted() // 4 - (1 if first <= second else 0)
    scale = min(max(16 - weight * 4, _scale(left), _scale(right), 0), 1000)
    # Digits that are cut off behind the scale leave the rounding as it is.
    digits = max(left.adjusted() - right.adjusted(), 0) + scale + 5
    cut = Context(prec=digits, rounding=ROUND_DOWN, Emax=200_000, Emin=-200_000).divide(left, right)
    return cut.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)


def _leading(number: Decimal) -> int:
    """The first group of four digits, the unit in which PostgreSQL stores numerics."""
    if not number:
        return 0
    return int(abs(number).scaleb(-(number.adjusted() // 4) * 4))


def _scale(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise division_by_zero()
    return DECIMALS.remainder(left, right)


def _whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise division_by_zero()
    return DECIMALS.divide_int(left, right)


def _rounded(rounding: str, value: Value, digits: Value = 0) -> Value:
    number = decimal_of(value)
    scale = int(min(max(decimal_of(digits), Decimal(-ROUNDED_SCALE_MAX)), Decimal(ROUNDED_SCALE_MAX)))
    if not number.is_finite() or 0 <= _scale(number) <= scale:
        return value
    return value_of_decimal(number.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT))


def _round_even(value: Any) -> Value:
    return float(round(value)) if isinstance(value, float) and math.isfinite(value) else value


def _float_result(function: Callable[..., float], *arguments: Any) -> Value:
    numbers = [float(argument) for argument in arguments]
    try:
        result = function(*numbers)
    except OverflowError:
        raise SqlError("22003", "value out of range: overflow") from None
    if math.isinf(result) and all(map(math.isfinite, numbers)):
        raise SqlError("22003", "value out of range: overflow")
    if result == 0 and (function is math.exp or (function is _power and numbers[0] != 0)) and all(map(math.isfinite, numbers)):
        raise SqlError("22003", "value out of range: underflow")
    return result


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    if base < 0 and exponent != math.floor(exponent):
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    return math.pow(base, exponent)


def _sqrt(value: float) -> float:
    if value < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return math.sqrt(value)


def _logarithm(value: float, other: float | None = None, *, base: float | None = None) -> float:
    number, foundation = (value, base) if other is None else (other, value)
    if number <= 0 or (foundation is not None and foundation <= 0):
        raise SqlError("2201E", f"cannot take logarithm of {'zero' if number == 0 else 'a negative number'}")
    if foundation == 10.0:
        return math.log10(number)
    if foundation == 1.0:
        raise division_by_zero()
    return math.log(number) if foundation is None else math.log(number) / math.log(foundation)


def _arc(function: Callable[[float], float], value: float) -> float:
    if not -1 <= value <= 1:
        raise SqlError("22003", "input is out of range")
    return function(value)


NUMBER_SCALARS: dict[str, Scalar] = {
    "quotient": Scalar(_quotient, (2,)),
    "remainder": Scalar(_whole_remainder, (2,)),
    "numeric_abs": Scalar(lambda value: value_of_decimal(decimal_of(value).copy_abs()), (1,)),
    "step": Scalar(_step, (1,)),
    "numeric_add": Scalar(partial(_numeric, DECIMALS.add), (2,)),
    "numeric_subtract": Scalar(partial(_numeric, DECIMALS.subtract), (2,)),
    "numeric_multiply": Scalar(partial(_numeric, DECIMALS.multiply), (2,)),
    "numeric_divide": Scalar(partial(_numeric, divide), (2,)),
    "numeric_order": Scalar(_numeric_order, (2,)),
    "numeric_text": Scalar(_numeric_text, (2,)),
    "whole": Scalar(_whole, (1,)),
    "float_add": Scalar(partial(_float, operator.add), (2,)),
    "float_subtract": Scalar(partial(_float, operator.sub), (2,)),
    "float_multiply": Scalar(partial(_float, operator.mul), (2,)),
    "float_divide": Scalar(partial(_float, operator.truediv), (2,)),
    "numeric_remainder": Scalar(partial(_numeric, _remainder), (2,)),
    "numeric_div": Scalar(partial(_numeric, _whole_quotient), (2,)),
    "numeric_round": Scalar(partial(_rounded, ROUND_HALF_UP), (1, 2)),
    "numeric_trunc": Scalar(partial(_rounded, ROUND_DOWN), (1, 2)),
    "numeric_ceil": Scalar(partial(_rounded, ROUND_CEILING), (1,)),
    "numeric_floor": Scalar(partial(_rounded, ROUND_FLOOR), (1,)),
    "round_even": Scalar(_round_even, (1,)),
    "power": Scalar(partial(_float_result, _power), (2,)),
    "pow": Scalar(partial(_float_result, _power), (2,)),
    "sqrt": Scalar(partial(_float_result, _sqrt), (1,)),
    "exp": Scalar(partial(_float_result, math.exp), (1,)),
    "ln": Scalar(partial(_float_result, _logarithm), (1,)),
    "log": Scalar(partial(_float_result, partial(_logarithm, base=10.0)), (1, 2)),
    "log10": Scalar(partial(_float_result, partial(_logarithm, base=10.0)), (1,)),
    "asin": Scalar(partial(_float_result, partial(_arc, math.asin)), (1,)),
    "acos": Scalar(partial(_float_result, partial(_arc, math.acos)), (1,)),
}
"""By name without prefix. All return NULL where an argument is NULL."""
