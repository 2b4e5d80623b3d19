"""The scale with which PostgreSQL prints a numeric. Pure.

A numeric is stored as an integer or a float, without trailing zeros. If the expression determines the scale, the zeros are added when the
value is sent. Source: PostgreSQL 15, ``numeric.c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import InvalidOperation

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import INTEGERS, type_of_name
from triplicate.sql.pg.values.numeric_limits import ROUNDED_SCALE_MAX, decimal_of_text

_SCALE_MAX = 1000
_OF_FIRST = ("nullif", "abs", "sum", "min", "max", "lag", "lead", "first_value", "last_value", "nth_value")
_WHOLE = ("ceil", "ceiling", "floor", "sign", "div")
_ALIKE = ("coalesce", "greatest", "least")
_FIELDS = {"second": 6, "milliseconds": 3}


def scale_of(node: Expression) -> int | None:
    """The scale of every value of a numeric expression; None if it varies or is unknown."""
    if node.as_oid is not None and not isinstance(node, nodes.Literal):
        return _declared(node.as_modifiers) if node.as_oid == types.NUMERIC else None
    if node.oid in INTEGERS:
        return 0
    if node.oid != types.NUMERIC:
        return None
    match node:
        case nodes.Literal(kind="number" | "string", value=text):
            return _written(text)
        case nodes.ColumnRef():
            return node.scale
        case nodes.Unary(operand=operand) | nodes.Collate(operand=operand):
            return scale_of(operand)
        case nodes.Cast(operand=operand):
            _, modifiers = type_of_name(node.type)
            return _declared(modifiers) if modifiers else scale_of(operand)
        case nodes.Binary():
            return _of_operator(node)
        case nodes.Call():
            return _of_call(node)
        case nodes.Case():
            results = [result for _, result in node.branches]
            return _alike([*results, node.otherwise] if node.otherwise is not None else results)
        case nodes.Subquery():
            body = node.query.body
            return scale_of(body.items[0].expression) if isinstance(body, nodes.Select) and len(body.items) == 1 else None
    return None


def common_scale(expressions: Sequence[Expression]) -> int | None:
    """The scale of one column of several queries or rows; None if they differ or it is unknown."""
    return _alike(expressions) if any(expression.oid == types.NUMERIC for expression in expressions) else None


def _declared(modifiers: tuple[int, ...]) -> int | None:
    return None if not modifiers else modifiers[1] if len(modifiers) > 1 else 0


def _written(text: str) -> int | None:
    try:
        exponent = decimal_of_text(text.replace("_", "").strip()).as_tuple().exponent
    except (InvalidOperation, SqlError):
        return None
    return max(0, -exponent) if isinstance(exponent, int) else None


def _of_operator(node: nodes.Binary) -> int | None:
    left, right = scale_of(node.left), scale_of(node.right)
    if left is None or right is None:
        return None
    if node.operator in ("+", "-", "%"):
        return max(left, right)
    return min(left + right, _SCALE_MAX) if node.operator == "*" else None


def _digits(text: str) -> int:
    return min(int(text[-10:]), ROUNDED_SCALE_MAX) if len(text.lstrip("0")) <= 10 else ROUNDED_SCALE_MAX


def _of_call(call: nodes.Call) -> int | None:
    name, arguments = call.name.last, call.arguments
    if name in ("round", "trunc"):
        digits = arguments[1] if len(arguments) > 1 else None
        if digits is None:
            return 0
        return _digits(digits.value) if isinstance(digits, nodes.Literal) and digits.value.isdigit() else None
    if name in _WHOLE:
        return 0
    if name in _OF_FIRST and arguments:
        return scale_of(arguments[0])
    if name in _ALIKE:
        return _alike(arguments)
    if name == "mod" and len(arguments) == 2:
        left, right = scale_of(arguments[0]), scale_of(arguments[1])
        return None if left is None or right is None else max(left, right)
    if name == "extract" and isinstance(arguments[0], nodes.Literal):
        field = arguments[0].value.lower()
        if field == "epoch":
            return 0 if arguments[1].oid == types.DATE else 6
        return _FIELDS.get(field, 0)
    return None


def _alike(expressions: Sequence[Expression]) -> int | None:
    scales = {scale_of(each) for each in expressions if not (isinstance(each, nodes.Literal) and each.kind == "null")}
    return scales.pop() if len(scales) == 1 else None
