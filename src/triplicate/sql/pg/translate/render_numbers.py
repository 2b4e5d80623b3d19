"""Renders arithmetic and comparisons. Pure.

Where SQLite would compute another number, one of our SQL functions computes or checks it: see `triplicate.sql.pg.analysis.overflow`.
"""

from __future__ import annotations

from triplicate.sql.pg.analysis.overflow import COMPARISONS, may_be_long
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.translate.render import OURS, sqlite_strength
from triplicate.sql.pg.translate.render_constants import ConstantRenderer
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import INTEGERS, NUMBERS

_SUM_STRENGTH = 7
_FLOATS = (types.FLOAT4, types.FLOAT8)
_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}
_LARGEST_SHIFT = 63


class NumberRenderer(ConstantRenderer):
    """Renders operators of numbers."""

    def _binary(self, node: nodes.Binary) -> None:
        operator = node.operator
        if self.context is TargetContext.CONDITION and operator in COMPARISONS:
            super()._binary(node)
        elif operator in COMPARISONS and (may_be_long(node.left) or may_be_long(node.right)):
            self._long_comparison(node)
        elif operator in COMPARISONS and isinstance(node.left, nodes.RowConstructor) and isinstance(node.right, nodes.RowConstructor):
            self._row_comparison(node, node.left, node.right)
        elif operator in ("<<", ">>"):
            self._shift(node)
        else:
            super()._binary(node)

    def _long_comparison(self, node: nodes.Binary) -> None:
        sides = (node.left, node.right)
        if all(side.oid in (*NUMBERS, types.UNKNOWN) for side in sides):
            self.call(OURS + "numeric_order", node, *sides)
            self.add(f" {node.operator} 0", node)
            return
        self.ordered(node.left)
        self.add(f" {node.operator} ", node)
        self.ordered(node.right)

    def _row_comparison(self, node: nodes.Binary, left: nodes.RowConstructor, right: nodes.RowConstructor) -> None:
        if not any(map(may_be_long, (*left.items, *right.items))):
            self.verbatim(node)
            return
        for row in (left, right):
            self.add(f" {node.operator} (" if row is right else "(", node)
            for index, item in enumerate(row.items):
                self.add(", " if index else "", node)
                self.ordered(item)
            self.add(")", node)

    def ordered(self, node: Expression) -> None:
        """Render a value to compare or sort: a numeric that is stored as text becomes the nearest number."""
        if not may_be_long(node):
            self.operand(node, _SUM_STRENGTH, is_right=False)
            return
        self.add("(", node)
        self.operand(node, _SUM_STRENGTH, is_right=False)
        self.add(" + 0)", node)

    def _between(self, node: nodes.Between) -> None:
        is_plain = self.context is TargetContext.CONDITION or node.symmetric
        if is_plain or not any(map(may_be_long, (node.operand, node.low, node.high))):
            super()._between(node)
            return
        self.ordered(node.operand)
        self.add(" NOT BETWEEN " if node.negated else " BETWEEN ", node)
        self.ordered(node.low)
        self.add(" AND ", node)
        self.ordered(node.high)

    def _shift(self, node: nodes.Binary) -> None:
        """Render a shift. PostgreSQL uses the last six bits of the number; SQLite shifts by a negative number in the other direction."""
        right = node.right
        if isinstance(right, nodes.Literal) and right.value.isdigit() and int(right.value) <= _LARGEST_SHIFT:
            self.verbatim(node)
            return
        self.operand(node.left, sqlite_strength(node), is_right=False)
        self.add(f" {node.operator} (", node)
        self.operand(right, sqlite_strength(node), is_right=False)
        self.add(f" & {_LARGEST_SHIFT})", node)

    def _arithmetic(self, node: nodes.Binary) -> None:
        operator = node.operator
        if self.context is TargetContext.CONDITION and (operator in ("+", "-", "*") or (operator in ("/", "%") and node.oid in INTEGERS)):
            self.verbatim(node)
        elif operator == "^":
            self.call(OURS + "power", node, node.left, node.right)
        elif node.oid == types.NUMERIC or (operator == "%" and node.oid not in INTEGERS and node.oid is not None):
            self.call(f"{OURS}numeric_{_NAMES[operator]}", node, node.left, node.right)
        elif node.oid in _FLOATS:
            self._float_arithmetic(node)
        elif operator in ("/", "%"):
            self._division(node)
        else:
            self.verbatim(node)

    def _division(self, node: nodes.Binary) -> None:
        is_safe = isinstance(node.right, nodes.Literal) and node.right.kind == "number" and node.right.value.strip("0.") != ""
        if not is_safe and not isinstance(node.left, nodes.Literal | nodes.Parameter | nodes.ColumnRef):
            self.call(OURS + ("quotient" if node.operator == "/" else "remainder"), node, node.left, node.right)
            return
        self.operand(node.left, sqlite_strength(node), is_right=False)
        self.add(f" {node.operator} ", node)
        if is_safe:
            self.write(node.right)
        else:
            # NULL divided by zero is NULL.
            self.call(OURS + "divisor", node.right, node.right, node.left)

    def _float_arithmetic(self, node: nodes.Binary) -> None:
        """Render float arithmetic. A function of ours checks an infinite or NaN result, and a result 0 of operands other than 0."""
        if not self.context.calls_ours or _cannot_overflow(node):
            self._plain(node)
            return
        function = f"{OURS}float_{_NAMES[node.operator]}"
        if not (_is_simple(node.left) and _is_simple(node.right)):
            self.call(function, node, node.left, node.right)
            return
        self.add("iif(abs(", node)
        self._plain(node)
        self.add(") < 9e999", node)
        if node.operator in ("*", "/"):
            self.add(" AND ", node)
            self._plain(node)
            self.add(" <> 0", node)
        self.add(", ", node)
        self._plain(node)
        self.add(", ", node)
        self.call(function, node, node.left, node.right)
        self.add(")", node)

    def _plain(self, node: nodes.Binary) -> None:
        strength = sqlite_strength(node)
        if node.operator == "/" and not (isinstance(node.left, nodes.ColumnRef) and node.left.oid in _FLOATS and not node.left.is_computed):
            self.add("CAST(", node)
            self.write(node.left)
            self.add(" AS REAL)", node)
        else:
            self.operand(node.left, strength, is_right=False)
        self.add(f" {node.operator} ", node)
        self.operand(node.right, strength, is_right=True)


def _is_simple(node: Expression) -> bool:
    """Whether the expression is cheap enough to evaluate it twice."""
    return isinstance(node, nodes.ColumnRef | nodes.Parameter | nodes.Literal) and node.as_oid is None


def _cannot_overflow(node: nodes.Binary) -> bool:
    """Whether the right side is a constant that gives every finite float a finite result, which is 0 only for operands near 0."""
    right = node.right
    if not isinstance(right, nodes.Literal) or right.kind != "number" or right.value.lower().startswith("0x"):
        return False
    number = abs(float(right.value.replace("_", "")))
    if node.operator in ("+", "-"):
        return number < 1e100
    return 1 <= number < 1e15 if node.operator == "/" else 1e-15 < number <= 1
