"""Keeps SQLite's compilation of a statement with very many constants linear. Pure.

SQLite computes each constant operand once, before the statement's loops. For each it searches the list of those that it has, so a chain
of n comparisons with constants takes n² steps, which nothing can interrupt: 60,000 terms of OR took 5 s, each time that they were prepared.
A call of a function with constant arguments is computed once too, but is not in that list. So the constants beyond the first thousand
are written as such calls, with the same value, affinity and collation. Rows of VALUES, and longer lists of constants behind IN, are not
searched.
"""

from __future__ import annotations

from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import SyntaxNode
from triplicate.sql.pg.translate.render import Renderer

LISTED_MAX = 1_000
"""Constants that are written as they are."""
_COMPARED_MAX = 2
"""Values behind IN that SQLite compares one by one; of more constants it makes a table."""
_OPERATORS = (nodes.Binary, nodes.Logical, nodes.Case, nodes.Between, nodes.IsTest)
_CONSTANTS = (nodes.Literal, nodes.Parameter)
_OF_ITS_OWN = (nodes.QueryExpression, nodes.Select, nodes.Sort)
"""Their numbers may be positions in the select list."""


def _is_constant(node: SyntaxNode) -> bool:
    if isinstance(node, nodes.Cast):
        return isinstance(node.operand, _CONSTANTS)
    if isinstance(node, nodes.Unary):
        return node.operator in ("-", "+") and isinstance(node.operand, nodes.Literal)
    return isinstance(node, nodes.Parameter) or (isinstance(node, nodes.Literal) and node.kind not in ("null", "default"))


class ConstantRenderer(Renderer):
    """Writes the operands of operators that are constants."""

    _is_operand = False
    _listed = 0

    def write(self, node: SyntaxNode) -> None:
        if self._is_operand and _is_constant(node):
            self._listed += 1
            if self._listed > LISTED_MAX:
                self._is_operand = False
                self.add("ifnull(", node)
                self.write(node)
                self.add(",NULL)", node)
                self._is_operand = True
                return
        before = self._is_operand
        if isinstance(node, _OPERATORS):
            self._is_operand = True
        elif isinstance(node, nodes.In):
            self._is_operand = len(node.items) <= _COMPARED_MAX or not all(map(_is_constant, node.items))
        elif isinstance(node, _OF_ITS_OWN):
            self._is_operand = False
        super().write(node)
        self._is_operand = before
