"""Renders calls of functions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.calls import DATE_PARTS, FUNCTIONS
from triplicate.sql.pg.analysis.grouping import same_expression
from triplicate.sql.pg.analysis.overflow import may_be_long
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.translate.render import OURS
from triplicate.sql.pg.translate.render_numbers import NumberRenderer
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import FORMAT_ARGUMENT_MAX, FORMAT_FEW, INTEGERS, WRITTEN_OTHERWISE

UUID = (
    "(lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2) || '-' || "
    "substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6))))"
)
"""A UUID of version 4 from SQLite's own random bytes."""
RANDOM = "((random() & 9007199254740991) / 9007199254740992.0)"
"""PostgreSQL's random(): 53 random bits, which a float represents exactly."""


class CallRenderer(NumberRenderer):
    """Writes calls."""

    def _call(self, node: nodes.Call) -> None:
        name = node.name.last
        function = FUNCTIONS.get(name)
        if function is not None and function.takes_text:
            for argument in node.arguments:
                if argument.oid == types.BOOL and name != "string_agg":
                    # PostgreSQL's concat writes t or f.
                    argument.as_oid, argument.as_modifiers = types.BPCHAR, (1,)
                elif argument.oid in WRITTEN_OTHERWISE:
                    argument.as_oid = types.TEXT
        if self._is_special(node, name):
            return
        sqlite = function.sqlite if function is not None else ""
        if name in ("sum", "avg") and node.oid == types.NUMERIC == node.arguments[0].oid and not node.is_window:
            sqlite = f"{OURS}numeric_{name}"
        elif name == "replace" and len(node.arguments) == 3 and not _is_text(node.arguments[1]):
            # In SQLite, replace() of an empty text returns the text, even if the replacement is NULL.
            sqlite = OURS + name
        if sqlite or len(node.name.parts) > 1:
            self.replaced(node, [(node.name.start, node.name.end, sqlite or name)])
        else:
            self.verbatim(node)

    def _is_special(self, node: nodes.Call, name: str) -> bool:
        """Render a call that needs more than another name. Returns False for any other call."""
        arguments = node.arguments
        if name in DATE_PARTS:
            function = "date_trunc" if name == "date_trunc" else "date_part"
            self.add("CAST(" if name == "date_part" else "", node)
            self.call(OURS + function, node, arguments[0], arguments[1], str(arguments[1].oid or 0))
            self.add(" AS REAL)" if name == "date_part" else "", node)
        elif name == "position":
            self.call("instr", node, *reversed(arguments))
        elif name == "trim" and node.words:
            self._trim(node)
        elif name in ("substring", "substr"):
            self._substring(node)
        elif name in ("random", "gen_random_uuid", "uuid_generate_v4"):
            self.add(RANDOM if name == "random" else UUID, node)
        elif name == "string_agg" and node.is_distinct and len(arguments) == 2:
            self._distinct_join(node)
        elif name == "coalesce" and len(arguments) == 1:
            self.add("(", node)
            self.write(arguments[0])
            self.add(")", node)
        elif name in ("greatest", "least"):
            self._extreme(node, "max" if name == "greatest" else "min")
        elif name == "format" and arguments:
            self._format(node)
        elif name in ("min", "max") and any(map(may_be_long, arguments)):
            self._longest(node)
        elif name in ("mod", "div") and len(arguments) == 2:
            self._divided(node, name)
        elif name == "abs" and node.oid == types.NUMERIC:
            self.call(OURS + "numeric_abs", node, *arguments)
        elif name in ("round", "trunc", "sign", "ceil", "ceiling", "floor") and arguments:
            return self._rounding(node, name)
        else:
            return False
        return True

    def _trim(self, node: nodes.Call) -> None:
        """Render ``trim(both 'x' from text)``. In SQLite the characters are the last argument."""
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.words[0], "trim")
        self.call(name, node, *reversed(node.arguments))

    def _distinct_join(self, node: nodes.Call) -> None:
        """Render string_agg(DISTINCT …). SQLite has DISTINCT only for aggregates of one argument."""
        if node.is_window:
            raise SqlError("0A000", "DISTINCT is not implemented for window functions", position=node.start + 1)
        for sort in node.order:
            if not any(same_expression(sort.expression, argument) for argument in node.arguments):
                raise SqlError(
                    "42P10",
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    position=sort.expression.start + 1,
                )
        if len(node.order) > 1 or any(not same_expression(sort.expression, node.arguments[0]) for sort in node.order):
            raise SqlError("0A000", "string_agg(DISTINCT …) can be ordered by its first argument only")
        is_descending = any(sort.descending for sort in node.order)
        self.call(OURS + "join_distinct", node, *node.arguments, "1" if is_descending else "0")
        if node.filter is not None:
            self.add(" FILTER (WHERE ", node)
            self.write(node.filter)
            self.add(")", node)

    def _substring(self, node: nodes.Call) -> None:
        arguments: list[Expression | str] = list(node.arguments)
        if node.words == ("FOR",):
            arguments = [node.arguments[0], "1", node.arguments[1]]
        elif node.words == ("FOR", "FROM"):
            arguments = [node.arguments[0], node.arguments[2], node.arguments[1]]
        plain = node.oid != types.BYTEA and all(
            isinstance(argument, str) or (isinstance(argument, nodes.Literal) and argument.value.isdigit() and int(argument.value) > 0)
            for argument in arguments[1:]
        )
        # With a constant position both databases return the same text, and an index can use SQLite's function.
        self.call("substr" if plain else OURS + "substr", node, *arguments)

    def _extreme(self, node: nodes.Call, name: str) -> None:
        """Render greatest and least, which ignore NULL. SQLite's max(a, b) and min(a, b) return NULL for it."""
        if len(node.arguments) == 1:
            self.call("", node, node.arguments[0])
            return
        kind = "numeric_" if any(map(may_be_long, node.arguments)) else ""
        self._pairwise(OURS + kind + ("greatest" if name == "max" else "least"), node, node.arguments)

    def _pairwise(self, name: str, node: nodes.Call, arguments: Sequence[Expression]) -> None:
        """Render a call as calls of two arguments each: a call of Python copies all its arguments before another thread can run."""
        if len(arguments) == 1:
            self.write(arguments[0])
            return
        middle = len(arguments) // 2
        self.add(f"{name}(", node)
        self._pairwise(name, node, arguments[:middle])
        self.add(", ", node)
        self._pairwise(name, node, arguments[middle:])
        self.add(")", node)

    def _format(self, node: nodes.Call) -> None:
        """Render format(). Of many arguments, SQLite passes no more than one character beyond the limit for each."""
        self.add(f"{OURS}format(", node)
        for index, argument in enumerate(node.arguments):
            is_cut = len(node.arguments) > FORMAT_FEW and index
            self.add(", substr(" if is_cut else ", " if index else "", node)
            self.write(argument)
            self.add(f", 1, {FORMAT_ARGUMENT_MAX + 1})" if is_cut else "", node)
        self.add(")", node)

    def _longest(self, node: nodes.Call) -> None:
        """Render min() and max() of numerics that may be stored as text."""
        at = node.start
        for argument in node.arguments:
            self.pieces.copy(at, argument.start)
            self.ordered(argument)
            at = argument.end
        for child in list(node.children())[len(node.arguments) :]:
            self.pieces.copy(at, child.start)
            self.write(child)
            at = child.end
        self.pieces.copy(at, node.end)

    def _divided(self, node: nodes.Call, name: str) -> None:
        left, right = node.arguments
        if all(argument.oid in INTEGERS for argument in node.arguments):
            self.call(OURS + ("quotient" if name == "div" else "remainder"), node, left, right)
        else:
            self.call(OURS + ("numeric_div" if name == "div" else "numeric_remainder"), node, left, right)

    def _rounding(self, node: nodes.Call, name: str) -> bool:
        oid = node.arguments[0].oid
        if name == "round" and oid in (types.FLOAT4, types.FLOAT8) and len(node.arguments) == 1:
            self.call(OURS + "round_even", node, node.arguments[0])
        elif oid == types.NUMERIC and name != "sign":
            self.call(f"{OURS}numeric_{'ceil' if name == 'ceiling' else name}", node, *node.arguments)
        elif name == "sign" and oid != types.NUMERIC:
            self.add("CAST(", node)
            self.verbatim(node)
            self.add(" AS REAL)", node)
        elif oid in INTEGERS and name in ("round", "trunc", "ceil", "ceiling", "floor") and len(node.arguments) == 1:
            self.add("CAST(", node)
            self.write(node.arguments[0])
            self.add(" AS REAL)", node)
        elif len(node.arguments) == 2 and name in ("round", "trunc"):
            self.call(f"{OURS}numeric_{name}", node, *node.arguments)
        else:
            return False
        return True


def _is_text(node: Expression) -> bool:
    """Whether it is a text constant that is not empty."""
    return isinstance(node, nodes.Literal) and node.kind == "string" and node.value != ""
