"""Finds arithmetic whose result could silently change its type: integers that become floats, numerics that become text. Pure.

SQLite converts to a float when integers overflow, and sorts text after numbers.
"""

from __future__ import annotations

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax import dml_nodes, nodes
from triplicate.sql.pg.syntax.nodes import Expression, SyntaxNode
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import INTEGERS, convert, decimal_of, type_of_name, value_of_decimal

COMPARISONS = ("=", "==", "<", ">", "<=", ">=", "<>", "!=")
_EXACT_DIGITS = 15
"""A float represents every number with at most this number of digits."""
_PASSING = ("coalesce", "nullif", "ifnull")
_SHORTENING = ("round", "trunc", "abs", "sign", "ceil", "ceiling", "floor", "lag", "lead", "first_value", "last_value", "nth_value")


def mark_arithmetic(statement: dml_nodes.DmlStatement, *, leaves: bool = True) -> None:
    """Mark integer arithmetic whose result is an operand of another expression, so that it is checked for overflow there.

    Results that leave the statement are checked when they are sent, and comparisons with a float are correct.

    Args:
        leaves: whether the statement's results leave it; those of a view are operands where it is used.
    """
    pending: list[tuple[SyntaxNode, bool]] = [(statement, leaves)]
    while pending:
        node, leaves = pending.pop()
        for child in node.children():
            if isinstance(child, nodes.Literal):
                continue  # A long INSERT has thousands of them.
            unchecked = _leaves(node, child, leaves)
            if not unchecked and isinstance(child, Expression) and _may_overflow(child):
                child.is_checked = True
            pending.append((child, unchecked))


def _leaves(node: SyntaxNode, child: SyntaxNode, leaves: bool) -> bool:
    """Whether `child` is checked elsewhere or only compared. `leaves` is the same property of `node`."""
    match node:
        case nodes.Binary(operator=operator):
            return operator in COMPARISONS
        case nodes.Between() | nodes.IsTest() | nodes.In() | nodes.Sort() | nodes.Logical():
            return True
        case nodes.FromItem() | nodes.With() | nodes.Subquery() | nodes.Exists():
            return False
        case nodes.Call():
            return leaves and node.name.last in _PASSING
        case nodes.Expression() if not isinstance(node, nodes.Case):
            return False
    return leaves


def _may_overflow(node: Expression) -> bool:
    if node.oid not in INTEGERS:
        return False
    match node:
        case nodes.Binary(operator="+" | "-" | "*"):
            return True
        case nodes.Binary(operator="/", right=right):
            return not isinstance(right, nodes.Literal)
        case nodes.Unary(operator="-"):
            return not isinstance(node.operand, nodes.Literal)
    return False


def may_be_long(node: Expression) -> bool:
    """Whether a numeric may have more digits than an integer or a float represents. Such a numeric is text."""
    if node.as_oid is not None and not isinstance(node, nodes.Literal):
        return node.as_oid == types.NUMERIC and not node.is_stored
    if node.oid != types.NUMERIC:
        return False
    match node:
        case nodes.Literal():
            return _is_long(node)
        case nodes.Parameter():
            return False
        case nodes.ColumnRef():
            return node.is_computed
        case nodes.Unary(operand=operand) | nodes.Collate(operand=operand):
            return may_be_long(operand)
        case nodes.Cast(operand=operand):
            _, modifiers = type_of_name(node.type)
            if modifiers and modifiers[0] <= _EXACT_DIGITS:
                return False
            if isinstance(operand, nodes.Literal):
                return _is_long(operand)
            return may_be_long(operand) or operand.oid not in (*INTEGERS, types.FLOAT4, types.FLOAT8, types.NUMERIC)
        case nodes.Case():
            results = [result for _, result in node.branches]
            return any(map(may_be_long, [*results, node.otherwise] if node.otherwise is not None else results))
        case nodes.Call():
            return _call_may_be_long(node)
    return True


def _is_long(node: nodes.Literal) -> bool:
    try:
        if node.kind == "number":
            return isinstance(value_of_decimal(decimal_of(node.value.replace("_", ""))), str)
        return node.kind == "string" and isinstance(convert(node.value, None, types.NUMERIC), str)
    except SqlError:
        # The renderer refuses such a constant.
        return False


def _call_may_be_long(call: nodes.Call) -> bool:
    name = call.name.last
    if name in ("min", "max"):
        return False
    if name in ("sum", "avg") and (call.is_window or (call.arguments and call.arguments[0].oid != types.NUMERIC)):
        return False
    if name == "extract":
        field = call.arguments[0]
        return isinstance(field, nodes.Literal) and field.value.lower() == "epoch"
    if name in _PASSING or name in _SHORTENING or name in ("greatest", "least"):
        return any(map(may_be_long, call.arguments))
    return True
