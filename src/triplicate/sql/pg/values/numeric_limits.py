"""The limits on numerics, checked before anything writes out their digits: 35 characters can stand for a billion of them. Pure.

Source: PostgreSQL 15 documentation, "Numeric Types"; `numeric.c` (NUMERIC_WEIGHT_MAX, NUMERIC_DSCALE_MAX, NUMERIC_MAX_RESULT_SCALE).
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from triplicate.errors import SqlError

DIGITS_BEFORE, DIGITS_AFTER = 131_072, 16_383
"""The largest number of digits before and after the point."""
FLOAT_DIGITS = 15
"""Decimal digits that every float keeps."""
SCALE_MAX = 1000
"""Of the scale that a type declares; the smallest is its negative."""
ROUNDED_SCALE_MAX = 2000
"""round() and trunc() take a larger number of digits for this one."""
EXACT = Context(prec=DIGITS_BEFORE + DIGITS_AFTER + 1, rounding=ROUND_HALF_UP, Emax=200_000, Emin=-200_000)
"""Computes with every digit of a numeric. Only for operations that make no more digits than their operand has."""

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SMALLEST = Decimal(1).scaleb(-DIGITS_AFTER)


def overflow() -> SqlError:
    return SqlError("22003", "value overflows numeric format")


def decimal_of_text(text: str) -> Decimal:
    """The number that a text writes.

    Raises:
        InvalidOperation: it is no number. SqlError: 22003, it has more digits than a numeric may have.
    """
    if len(text) > 2 * EXACT.prec:
        raise overflow()
    try:
        number = Decimal(text)
    except InvalidOperation:
        # The exponent of a number may be too large for a Decimal as well.
        if NUMBER.fullmatch(text.strip()):
            raise overflow() from None
        raise
    if not number.is_finite():
        return number
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "the number is finite"
    if exponent < -DIGITS_AFTER or (number and number.adjusted() >= DIGITS_BEFORE):
        raise overflow()
    return number if number or exponent <= 0 else Decimal(0)


def result(number: Decimal) -> Decimal:
    """The result of an operation as a numeric. Raises SqlError 22003 if it is too large; digits that no numeric has are rounded away."""
    if not number.is_finite():
        return number
    if not number:
        return Decimal(0)
    if number.adjusted() >= DIGITS_BEFORE:
        raise overflow()
    return number if number.adjusted() > -DIGITS_AFTER // 2 else number.quantize(_SMALLEST, context=EXACT)
