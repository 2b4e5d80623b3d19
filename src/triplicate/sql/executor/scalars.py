"""Scalar functions and aggregates of PostgreSQL that SQLite lacks or has with another meaning.

Translated statements call them (`triplicate.sql.pg.translate`). Stored schemas may not call them, so that plain SQLite can read the file.
All are deterministic.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation
from functools import partial
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import CAST_NAMES, convert, decimal_of, stored_numeric, value_of_decimal
from triplicate.sql.pg.values.date_functions import date_part, date_trunc, difference, shifted
from triplicate.sql.pg.values.patterns import glob_of_like, regular_expression

_TEXT_MAX = 16 * 1024 * 1024
"""Upper bound on the characters of a result."""
_MATCHED_MAX = 100_000
"""Upper bound on the characters that a regular expression is matched against."""
_DECIMALS = Context(prec=1000, rounding=ROUND_HALF_UP, Emax=200_000, Emin=-200_000)


def _strict(function: Callable[..., Value]) -> Callable[..., Value]:
    """Make a function return NULL when an argument is NULL."""

    def called(*arguments: Value) -> Value:
        return None if None in arguments else function(*arguments)

    return called


def _cast(target: int, value: Value, source: Value = 0, *modifiers: Any) -> Value:
    return convert(value, int(source or 0) or None, target, modifiers)


def _divisor(value: Value, dividend: Value) -> Value:
    """The right side of a division. With NULL on the left the result is NULL for any right side."""
    if dividend is not None and value == 0 and not isinstance(value, (str, bytes)):
        raise _division_by_zero()
    return value


def _quotient(left: Any, right: Any) -> Value:
    """Division as in SQLite: integers are truncated towards zero."""
    if right == 0:
        raise _division_by_zero()
    if isinstance(left, int) and isinstance(right, int):
        whole = abs(left) // abs(right)
        found = whole if (left < 0) == (right < 0) else -whole
        if found >= 2**63:
            raise SqlError("22003", "bigint out of range")
        return found
    return float(left) / float(right)


def _whole_remainder(left: Any, right: Any) -> Value:
    if right == 0:
        raise _division_by_zero()
    rest = abs(int(left)) % abs(int(right))
    return -rest if left < 0 else rest


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


def _division_by_zero() -> SqlError:
    return SqlError("22012", "division by zero")


# Text.


def _substr(value: Any, start: Any, length: Any = None) -> Value:
    """The characters from position `start`, counted from 1. Positions before the first count towards the length."""
    if not isinstance(value, bytes):
        value = str(value)
    end = len(value) if length is None else int(start) - 1 + int(length)
    if length is not None and length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    found: Value = value[max(int(start) - 1, 0) : max(end, 0)]
    return found


def _left(value: Any, count: Any) -> Value:
    text = str(value)
    end = int(count) if count >= 0 else max(len(text) + int(count), 0)
    return text[:end]


def _right(value: Any, count: Any) -> Value:
    text = str(value)
    start = max(len(text) - int(count), 0) if count >= 0 else -int(count)
    return text[start:]


def _pad(value: Any, length: Any, fill: Any = " ", *, left: bool) -> Value:
    text, fill, length = str(value), str(fill), max(int(length), 0)
    if length > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {length}")
    missing = length - len(text)
    if missing <= 0 or not fill:
        cut: str = text[:length]
        return cut
    padding: str = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _repeat(value: Any, count: Any) -> Value:
    text = str(value)
    if len(text) * max(int(count), 0) > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {len(text) * int(count)}")
    return text * max(int(count), 0)


def _split_part(value: Any, delimiter: Any, place: Any) -> Value:
    if place == 0:
        raise SqlError("22023", "field position must not be zero")
    parts = str(value).split(str(delimiter)) if delimiter else [str(value)]
    index = int(place) - 1 if place > 0 else len(parts) + int(place)
    return parts[index] if 0 <= index < len(parts) else ""


def _replace(value: Any, wanted: Any, given: Any) -> Value:
    text, old, new = str(value), str(wanted), str(given)
    if not old:
        return text
    size = len(text) + text.count(old) * (len(new) - len(old))
    if size > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {size}")
    return text.replace(old, new)


def _translate(value: Any, wanted: Any, given: Any) -> Value:
    table: dict[int, str | None] = {}
    for index, character in enumerate(str(wanted)):
        table.setdefault(ord(character), str(given)[index] if index < len(str(given)) else None)
    return str(value).translate(table)


def _initcap(value: Any) -> Value:
    found, in_word = [], False
    for character in str(value):
        is_letter = character.isascii() and character.isalnum()
        folded = character.lower() if in_word else character.upper()
        found.append(folded if is_letter else character)
        in_word = is_letter
    return "".join(found)


_PLACE = re.compile(r"%(?:(\d+)\$)?(-?)(\d*)(.?)", re.DOTALL)


def _format(pattern: Value, *arguments: Value) -> Value:
    """PostgreSQL's format(): ``%s`` with a position and a width, and ``%%``. NULL is an empty text."""
    if pattern is None:
        return None
    found, at, following, text = list[str](), 0, 0, str(pattern)
    for match in _PLACE.finditer(text):
        place, left, width, kind = match.groups()
        found.append(text[at : match.start()])
        at = match.end()
        if kind == "%":
            found.append("%")
            continue
        if kind in ("I", "L"):
            raise SqlError("0A000", f"format() with %{kind} is not available", hint="Use %s.")
        if kind != "s" or place == "0":
            raise SqlError("22023", f"unrecognized format() type specifier {kind!r}", hint='For a single "%" use "%%".')
        following = int(place) if place else following + 1
        if following > len(arguments):
            raise SqlError("22023", "too few arguments for format()")
        argument = arguments[following - 1]
        shown = "" if argument is None else str(argument)
        if width and int(width) > _TEXT_MAX:
            raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {width}")
        found.append(shown.ljust(int(width or 0)) if left else shown.rjust(int(width or 0)))
    return "".join([*found, text[at:]])


def _chr(number: Any) -> Value:
    if not 0 < int(number) <= 0x10FFFF or 0xD800 <= int(number) < 0xE000:
        raise SqlError("22021" if number else "54000", f"requested character not valid: {number}")
    return chr(int(number))


def _to_hex(number: Any) -> Value:
    return f"{int(number) & (2**64 - 1):x}"


def _md5(value: Any) -> Value:
    data = value if isinstance(value, bytes) else str(value).encode()
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _matches(value: Any, pattern: Any, ignores_case: Any) -> Value:
    text = str(value)
    if len(text) > _MATCHED_MAX:
        raise SqlError("54000", f"a regular expression is matched against {_MATCHED_MAX} characters, the text has {len(text)}")
    return int(regular_expression(str(pattern), bool(ignores_case)).search(text) is not None)


# Numbers.


def _numeric(operation: Callable[[Decimal, Decimal], Decimal], left: Value, right: Value) -> Value:
    try:
        return value_of_decimal(operation(decimal_of(left), decimal_of(right)))
    except DivisionByZero:
        raise _division_by_zero() from None
    except InvalidOperation:
        raise SqlError("22003", "value overflows numeric format") from None


def _numeric_order(left: Any, right: Any) -> Value:
    """-1, 0 or 1: numbers as SQLite keeps them, or texts of more digits."""
    if not isinstance(left, str) and not isinstance(right, str):
        return int(left > right) - int(left < right)
    one, other = decimal_of(left), decimal_of(right)
    return (one > other) - (one < other)


def _numeric_text(value: Value, scale: Any) -> Value:
    """A numeric with zeros appended up to `scale` fractional digits."""
    number = decimal_of(value)
    return f"{number:f}" if not number.is_finite() or _scale(number) >= scale else f"{number:.{int(scale)}f}"


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
        raise _division_by_zero() from None
    if math.isnan(found):
        raise SqlError("0A000", "the result is NaN, which cannot be stored", hint="NULL stands for no number.")
    if math.isinf(found) and math.isfinite(one) and math.isfinite(other):
        raise SqlError("22003", "value out of range: overflow")
    is_product = operation is operator.mul and other != 0
    if found == 0 and one != 0 and (is_product or (operation is operator.truediv and math.isfinite(other))):
        raise SqlError("22003", "value out of range: underflow")
    return found


def _divide(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise _division_by_zero()
    if not left.is_finite() or not right.is_finite():
        return _DECIMALS.divide(left, right)
    quotient = Context(prec=60).divide(left, right)
    # At least 16 significant digits, as in PostgreSQL, which counts groups of four digits before the point.
    weight = quotient.adjusted() // 4 if quotient else 0
    first, second = _leading(left), _leading(right)
    if quotient:
        weight = left.adjusted() // 4 - right.adjusted() // 4 - (1 if first <= second else 0)
    scale = min(max(16 - weight * 4, _scale(left), _scale(right), 0), 1000)
    return _DECIMALS.divide(left, right).quantize(Decimal(1).scaleb(-scale), context=_DECIMALS)


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
        raise _division_by_zero()
    return _DECIMALS.remainder(left, right)


def _whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise _division_by_zero()
    return _DECIMALS.divide(left, right).to_integral_value(ROUND_DOWN)


def _rounded(rounding: str, value: Value, digits: Any = 0) -> Value:
    number = decimal_of(value)
    if not number.is_finite():
        return value
    return value_of_decimal(number.quantize(Decimal(1).scaleb(-int(digits)), rounding=rounding, context=_DECIMALS))


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
        raise _division_by_zero()
    return math.log(number) if foundation is None else math.log(number) / math.log(foundation)


def _arc(function: Callable[[float], float], value: float) -> float:
    if not -1 <= value <= 1:
        raise SqlError("22003", "input is out of range")
    return function(value)


def _extreme(pick: Callable[..., Any], *values: Value) -> Value:
    """The greatest or least argument that is not NULL."""
    known: list[Any] = [value for value in values if value is not None]
    try:
        found: Value = pick(known) if known else None
    except TypeError:
        raise SqlError("42804", "greatest() and least() need values of one type") from None
    return found


def _step(value: Any) -> Value:
    if value == 0:
        raise SqlError("22023", "step size cannot equal zero")
    found: Value = value
    return found


def _json_text(value: Any) -> Value:
    """An element of JSON as text: a string without its quotes, NULL for null."""
    text = str(value)
    found: Value = json.loads(text) if text.startswith('"') else text
    return None if text == "null" else found


class _NumericSum:
    """sum() of numerics, exactly."""

    def __init__(self) -> None:
        self._sum: Decimal | None = None
        self._count = 0

    def step(self, value: Value) -> None:
        if value is not None:
            self._count += 1
            self._sum = _DECIMALS.add(self._sum or Decimal(0), decimal_of(value))

    def final(self) -> Value:
        return None if self._sum is None else value_of_decimal(self._sum)


class _NumericAverage(_NumericSum):
    """avg() of numerics, with as many digits as a division."""

    def final(self) -> Value:
        return None if self._sum is None else value_of_decimal(_divide(self._sum, Decimal(self._count)))


class _DistinctJoin:
    """string_agg(DISTINCT …). The values are in order, as in PostgreSQL, which sorts them to find equal ones."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str]] = set()
        self._is_descending = False

    def step(self, value: Value, separator: Value, is_descending: Value) -> None:
        self._is_descending = bool(is_descending)
        if value is not None:
            self._found.add((str(value), "" if separator is None else str(separator)))

    def final(self) -> Value:
        if not self._found:
            return None
        (first, _), *others = sorted(self._found, reverse=self._is_descending)
        return first + "".join(separator + value for value, separator in others)


def _to_timestamp(seconds: Any) -> Value:
    return shifted(float(seconds))


_STRICT: dict[str, tuple[Callable[..., Value], tuple[int, ...]]] = {
    "substr": (_substr, (2, 3)),
    "left": (_left, (2,)),
    "right": (_right, (2,)),
    "lpad": (partial(_pad, left=True), (2, 3)),
    "rpad": (partial(_pad, left=False), (2, 3)),
    "repeat": (_repeat, (2,)),
    "reverse": (lambda value: str(value)[::-1], (1,)),
    "split_part": (_split_part, (3,)),
    "replace": (_replace, (3,)),
    "translate": (_translate, (3,)),
    "initcap": (_initcap, (1,)),
    "chr": (_chr, (1,)),
    "ascii": (lambda value: ord(str(value)[0]) if value else 0, (1,)),
    "to_hex": (_to_hex, (1,)),
    "md5": (_md5, (1,)),
    "starts_with": (lambda value, prefix: int(str(value).startswith(str(prefix))), (2,)),
    "matches": (_matches, (3,)),
    "glob": (lambda pattern, escape: glob_of_like(str(pattern), str(escape)), (2,)),
    "json_text": (_json_text, (1,)),
    "quotient": (_quotient, (2,)),
    "remainder": (_whole_remainder, (2,)),
    "numeric_abs": (lambda value: value_of_decimal(decimal_of(value).copy_abs()), (1,)),
    "step": (_step, (1,)),
    "numeric_add": (partial(_numeric, _DECIMALS.add), (2,)),
    "numeric_subtract": (partial(_numeric, _DECIMALS.subtract), (2,)),
    "numeric_multiply": (partial(_numeric, _DECIMALS.multiply), (2,)),
    "numeric_divide": (partial(_numeric, _divide), (2,)),
    "numeric_order": (_numeric_order, (2,)),
    "numeric_text": (_numeric_text, (2,)),
    "whole": (_whole, (1,)),
    "float_add": (partial(_float, operator.add), (2,)),
    "float_subtract": (partial(_float, operator.sub), (2,)),
    "float_multiply": (partial(_float, operator.mul), (2,)),
    "float_divide": (partial(_float, operator.truediv), (2,)),
    "numeric_remainder": (partial(_numeric, _remainder), (2,)),
    "numeric_div": (partial(_numeric, _whole_quotient), (2,)),
    "numeric_round": (partial(_rounded, ROUND_HALF_UP), (1, 2)),
    "numeric_trunc": (partial(_rounded, ROUND_DOWN), (1, 2)),
    "numeric_ceil": (partial(_rounded, ROUND_CEILING), (1,)),
    "numeric_floor": (partial(_rounded, ROUND_FLOOR), (1,)),
    "round_even": (_round_even, (1,)),
    "power": (partial(_float_result, _power), (2,)),
    "pow": (partial(_float_result, _power), (2,)),
    "sqrt": (partial(_float_result, _sqrt), (1,)),
    "exp": (partial(_float_result, math.exp), (1,)),
    "ln": (partial(_float_result, _logarithm), (1,)),
    "log": (partial(_float_result, partial(_logarithm, base=10.0)), (1, 2)),
    "log10": (partial(_float_result, partial(_logarithm, base=10.0)), (1,)),
    "asin": (partial(_float_result, partial(_arc, math.asin)), (1,)),
    "acos": (partial(_float_result, partial(_arc, math.acos)), (1,)),
    "date_part": (date_part, (3,)),
    "date_trunc": (date_trunc, (3,)),
    "date_add": (lambda date, days, sign: difference(date, int(days) * int(sign)), (3,)),
    "date_difference": (difference, (2,)),
    "to_timestamp": (_to_timestamp, (1,)),
}


def register_scalars(connection: apsw.Connection) -> None:
    """Register the functions on a connection. Views, triggers, indexes and checks cannot call them."""

    def add(name: str, function: Callable[..., Value], count: int) -> None:
        connection.create_scalar_function(f"triplicate_{name}", function, count, deterministic=True, flags=apsw.SQLITE_DIRECTONLY)

    for name, (function, counts) in _STRICT.items():
        for count in counts:
            add(name, _strict(function), count)
    for oid, name in CAST_NAMES.items():
        for count in range(2, 5 if oid == types.NUMERIC else 4):
            add(f"to_{name}", partial(_cast, oid), count)
    make_sum: Any = _NumericSum
    connection.create_aggregate_function("triplicate_numeric_sum", make_sum, 1, flags=apsw.SQLITE_DIRECTONLY)
    make_average: Any = _NumericAverage
    connection.create_aggregate_function("triplicate_numeric_avg", make_average, 1, flags=apsw.SQLITE_DIRECTONLY)
    make_join: Any = _DistinctJoin
    connection.create_aggregate_function("triplicate_join_distinct", make_join, 3, flags=apsw.SQLITE_DIRECTONLY)
    add("divisor", _divisor, 2)
    add("limit", _limit, 2)
    add("single", _single, 2)
    for count in range(2, 5):
        add("stored_numeric", _stored_numeric, count)
    add("format", _format, -1)
    add("greatest", partial(_extreme, max), -1)
    add("numeric_greatest", partial(_extreme, partial(max, key=decimal_of)), -1)
    add("numeric_least", partial(_extreme, partial(min, key=decimal_of)), -1)
    add("least", partial(_extreme, min), -1)
