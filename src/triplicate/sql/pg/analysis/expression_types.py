"""Determines the types of expressions from the columns and constants in them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.calls import call_type
from triplicate.sql.pg.analysis.name_scope import Outputs, Parameters, Relation, Scope
from triplicate.sql.pg.analysis.type_resolution import TypeResolver, are_unlike, check_ordered, clash, common_type, is_known, no_operator
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import ARRAY_OF, ELEMENT_OF
from triplicate.sql.pg.values.conversions import (
    CAST_NAMES,
    INTEGERS,
    MOMENTS,
    NUMBERS,
    SHOWN,
    TEXTS,
    WRITTEN_OTHERWISE,
    has_cast,
    type_of_name,
)

_COMPARISONS = ("=", "==", "<", ">", "<=", ">=", "<>", "!=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "^")
_MOMENT_TYPES = {
    "current_date": types.DATE,
    "localtime": types.TIME,
    "localtimestamp": types.TIMESTAMP,
}
SESSION_NAMES = ("current_user", "session_user", "user", "current_role", "current_schema", "current_catalog")
"""PostgreSQL's keywords for values of the session. A column with such a name, which a schema for SQLite may have, takes precedence."""
_PATTERN_OPERATORS = ("~", "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*")
_REFUSED = {
    "#": "write (a | b) - (a & b)",
    "#>": "write json_extract(value, '$.a.b')",
    "#>>": "write json_extract(value, '$.a.b')",
    "@>": "", "<@": "", "&&": "", "#-": "", "@@": "use FTS5's MATCH", "@@@": "", "^@": "write starts_with(text, prefix)",
}  # fmt: skip
_REFUSED_PREFIXES = {"@": "write abs(x)", "!!": "", "|/": "write sqrt(x)", "||/": "write power(x, 1.0/3)"}


class ExpressionTyping:
    """Sets the type of each expression. Constants and parameters get the types of their contexts. Raises SqlError for type errors."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.typing = TypeResolver(parameters)
        self._rules: dict[type, Callable[[Any, Scope], int | None]] = {
            nodes.Literal: self._literal,
            nodes.Parameter: lambda node, _: self.parameters.oid(node.number),
            nodes.CurrentTime: self._moment,
            nodes.ColumnRef: self._column,
            nodes.Star: lambda _node, _scope: None,
            nodes.Unary: self._unary,
            nodes.Binary: self._binary,
            nodes.Logical: self._logical,
            nodes.IsTest: self._is_test,
            nodes.Between: self._between,
            nodes.Like: self._like,
            nodes.In: self._in,
            nodes.Quantified: self._quantified,
            nodes.Exists: self._exists,
            nodes.Subquery: self._subquery,
            nodes.Case: self._case,
            nodes.Cast: self._cast,
            nodes.Collate: self._collate,
            nodes.AtTimeZone: self._at_time_zone,
            nodes.RowConstructor: self._row,
            nodes.ArrayConstructor: self._array,
            nodes.Subscript: self._subscript,
            nodes.Call: self._call,
        }

    def query(self, query: nodes.QueryExpression, parent: Scope | None) -> Outputs | None:
        """The columns of a query inside an expression."""
        raise NotImplementedError

    def expression(self, expression: Expression, scope: Scope) -> int | None:
        """The type of an expression; None where it cannot be determined, UNKNOWN for an untyped constant or parameter."""
        expression.oid = self._rules[type(expression)](expression, scope)
        return expression.oid

    def condition(self, expression: Expression, scope: Scope, clause: str) -> None:
        """Analyse a condition. Raises SqlError 42804 for text, which SQLite would convert to a number."""
        self.expression(expression, scope)
        self.typing.resolve(expression, types.BOOL)
        if expression.oid in TEXTS or expression.oid in MOMENTS or expression.oid in (types.UUID, types.BYTEA):
            raise SqlError("42804", f"argument of {clause} must be type boolean, not type {SHOWN[expression.oid or 0]}")

    def window(self, window: nodes.WindowDefinition, scope: Scope) -> None:
        for expression in window.partition:
            self.expression(expression, scope)
        for sort in window.order:
            check_ordered(self.expression(sort.expression, scope))

    def union(self, expressions: list[Expression], left_oid: int | None, right_oid: int | None) -> int | None:
        """The type of one column of a set operation.

        Args:
            expressions: that are the column in each part. left_oid, right_oid: its types in the two sides.
        """
        if any(isinstance(expression, nodes.Star) for expression in expressions):
            return left_oid if left_oid == right_oid else None
        if any(expression.oid is None for expression in expressions):
            return None
        return self.typing.unify(expressions, is_result=True)

    # Leaves.

    def _literal(self, node: nodes.Literal, _scope: Scope) -> int | None:
        match node.kind:
            case "number":
                text = node.value.lower()
                if text.startswith("0x"):
                    return types.INT8
                if any(letter in text for letter in ".e"):
                    return types.NUMERIC
                digits = text.replace("_", "").lstrip("0")
                return types.NUMERIC if len(digits) > 19 or int(digits or "0") >= 2**63 else types.INT8
            case "blob":
                return types.BYTEA
            case "true" | "false":
                return types.BOOL
        return types.UNKNOWN

    def _moment(self, node: nodes.CurrentTime, _scope: Scope) -> int | None:
        if node.name == "current_time":
            raise SqlError("0A000", "current_time is not available: there is no type time with time zone", hint="Write localtime.")
        return _MOMENT_TYPES.get(node.name, types.TIMESTAMPTZ)

    def _column(self, node: nodes.ColumnRef, scope: Scope) -> int | None:
        exists, oid, relation = scope.column(node.name)
        self.refer(node, oid, relation)
        if not exists and node.name.quoted and len(node.name.parts) == 1 and scope.is_known():
            raise SqlError("42703", f'column "{node.name.last}" does not exist', hint="Text is written in single quotes.")
        if not exists and len(node.name.parts) == 1 and not node.name.quoted and node.name.last in SESSION_NAMES:
            node.session_name = node.name.last
            return types.TEXT
        return oid

    @staticmethod
    def refer(node: nodes.ColumnRef, oid: int | None, relation: Relation | None) -> None:
        """Note what a column's name refers to."""
        node.relation = relation
        node.is_computed = relation is None or not relation.is_stored(node.name.last)
        if oid == types.NUMERIC and relation is not None:
            modifiers = relation.modifiers.get(node.name.last.lower(), ())
            node.scale = modifiers[1] if modifiers else None

    # Operators.

    def _unary(self, node: nodes.Unary, scope: Scope) -> int | None:
        if node.operator in _REFUSED_PREFIXES:
            raise SqlError("0A000", f"operator {node.operator} is not available", hint=_REFUSED_PREFIXES[node.operator] or None)
        if node.operator == "NOT":
            self.condition(node.operand, scope, "NOT")
            return types.BOOL
        oid = self.expression(node.operand, scope)
        if node.operator == "-" and isinstance(node.operand, nodes.Literal) and node.operand.value == str(2**63):
            return types.INT8
        if oid == types.UNKNOWN:
            self.typing.resolve(node.operand, types.INT8 if node.operator == "~" else types.FLOAT8)
        if node.operand.oid in TEXTS or node.operand.oid in MOMENTS or node.operand.oid in (types.BOOL, types.UUID, types.BYTEA):
            raise SqlError("42883", f"operator does not exist: {node.operator} {SHOWN[node.operand.oid or 0]}")
        if node.operator == "~" and node.operand.oid in NUMBERS and node.operand.oid not in INTEGERS:
            raise SqlError("42883", f"operator does not exist: ~ {SHOWN[node.operand.oid or 0]}")
        return node.operand.oid

    def _binary(self, node: nodes.Binary, scope: Scope) -> int | None:
        operator = node.operator
        if operator in _REFUSED:
            raise SqlError("0A000", f"operator {operator} is not available", hint=_REFUSED[operator] or None)
        self.expression(node.left, scope)
        self.expression(node.right, scope)
        if operator in _COMPARISONS:
            self.typing.compare(node.left, operator, node.right)
            return types.BOOL
        if operator in _ARITHMETIC:
            return self._arithmetic(node)
        if operator == "||":
            return self._concatenation(node)
        if operator in _PATTERN_OPERATORS:
            self._patterns(node.left, node.right)
            return types.BOOL
        if operator in ("->", "->>"):
            is_index = node.right.oid in INTEGERS
            if isinstance(node.right, nodes.Literal) and node.right.value.startswith(("$.", "$[")):
                # A path is in SQLite's syntax. SQLite's operator returns numbers as numbers.
                self.typing.resolve_as_text(node.right)
                return types.JSON if operator == "->" else None
            self.typing.resolve(node.left, types.JSON)
            self.typing.resolve(node.right, types.INT8 if is_index else types.TEXT)
            return types.TEXT if operator == "->>" else types.JSONB if node.left.oid == types.JSONB else types.JSON
        for side in (node.left, node.right):
            self.typing.resolve(side, types.INT8)
            if side.oid in CAST_NAMES and side.oid not in INTEGERS:
                raise no_operator(node.left.oid, operator, node.right.oid)
        return types.INT8

    def _arithmetic(self, node: nodes.Binary) -> int | None:
        left, right = node.left, node.right
        if left.oid == types.UNKNOWN and right.oid == types.UNKNOWN and node.operator != "^":
            if not all(isinstance(side, nodes.Literal) and side.kind == "null" for side in (left, right)):
                raise SqlError(
                    "42725", f"operator is not unique: unknown {node.operator} unknown", hint="Cast one side: $1::int, or '1'::int."
                )
            return types.INT8
        if left.oid in MOMENTS or right.oid in MOMENTS:
            return self._moment_arithmetic(node)
        for side in (left, right):
            if side.oid in TEXTS or side.oid in (types.BOOL, types.UUID, types.BYTEA, types.JSON, types.JSONB):
                raise no_operator(left.oid, node.operator, right.oid)
        if node.operator == "^":
            for side, other in ((left, right), (right, left)):
                self.typing.resolve(side, types.NUMERIC if other.oid == types.NUMERIC else types.FLOAT8)
            return types.FLOAT8
        oid = self.typing.unify([left, right])
        if oid in INTEGERS:
            return types.INT8
        return oid if oid is not None and oid != types.FLOAT4 else types.FLOAT8 if oid else None

    def _moment_arithmetic(self, node: nodes.Binary) -> int | None:
        left, right = node.left, node.right
        if left.oid == types.DATE and node.operator in ("+", "-") and right.oid in INTEGERS:
            return types.DATE
        if node.operator == "+" and right.oid == types.DATE and left.oid in INTEGERS:
            return types.DATE
        if node.operator == "-" and common_type((left.oid, right.oid)) == types.DATE:
            self.typing.unify([left, right])
            return types.INT8
        raise SqlError(
            "0A000",
            f"there are no intervals: {SHOWN.get(left.oid or 0, '?')} {node.operator} {SHOWN.get(right.oid or 0, '?')} is not available",
            hint="Subtract dates, or add a number of days: date '2024-01-31' + 1. Compute other timestamps in the client.",
        )

    def _concatenation(self, node: nodes.Binary) -> int | None:
        left, right = node.left, node.right
        oids = (left.oid, right.oid)
        if any(oid in (types.JSONB, types.JSON) for oid in oids):
            raise SqlError("0A000", "operator || of json is not available", hint="Write json_patch(a, b).")
        if types.BYTEA in oids and not any(oid in TEXTS for oid in oids):
            for side in (left, right):
                self.typing.resolve(side, types.BYTEA)
            return types.BYTEA
        if all(is_known(oid) and oid not in TEXTS for oid in oids):
            raise no_operator(left.oid, "||", right.oid)
        for side in (left, right):
            self.typing.resolve(side, types.TEXT)
            if side.oid in WRITTEN_OTHERWISE:
                side.as_oid = types.TEXT
        return types.TEXT

    def _logical(self, node: nodes.Logical, scope: Scope) -> int | None:
        for operand in node.operands:
            self.condition(operand, scope, node.operator)
        return types.BOOL

    def _is_test(self, node: nodes.IsTest, scope: Scope) -> int | None:
        self.expression(node.operand, scope)
        if node.other is not None:
            self.expression(node.other, scope)
            self.typing.compare(node.operand, "=", node.other)
        elif node.test == "NULL":
            self.typing.resolve_as_text(node.operand)
        else:
            self.typing.resolve(node.operand, types.BOOL)
        return types.BOOL

    def _between(self, node: nodes.Between, scope: Scope) -> int | None:
        check_ordered(*[self.expression(part, scope) for part in (node.operand, node.low, node.high)])
        for limit in (node.low, node.high):
            if are_unlike(node.operand, limit):
                raise no_operator(node.operand.oid, "BETWEEN", limit.oid)
        if self.typing.unify([node.operand, node.low, node.high]) == types.UNKNOWN:
            for part in (node.operand, node.low, node.high):
                self.typing.resolve_as_text(part)
        return types.BOOL

    def _patterns(self, *sides: Expression) -> None:
        for side in sides:
            self.typing.resolve_as_text(side)
            if side.oid in NUMBERS or side.oid in MOMENTS or side.oid in (types.BOOL, types.UUID, types.BYTEA):
                raise no_operator(sides[0].oid, "~~", sides[1].oid)

    def _like(self, node: nodes.Like, scope: Scope) -> int | None:
        self.expression(node.operand, scope)
        self.expression(node.pattern, scope)
        if node.escape is not None:
            self.expression(node.escape, scope)
            self.typing.resolve_as_text(node.escape)
        if node.kind == "SIMILAR":
            raise SqlError("0A000", "SIMILAR TO is not available", hint="Write LIKE, or ~ with a regular expression.")
        if node.kind in ("LIKE", "ILIKE"):
            self._patterns(node.operand, node.pattern)
        else:
            self.typing.resolve_as_text(node.pattern)
            self.typing.resolve_as_text(node.operand)
        return types.BOOL

    def _in(self, node: nodes.In, scope: Scope) -> int | None:
        self.expression(node.operand, scope)
        if node.query is not None:
            outputs = self.query(node.query, scope)
            if outputs and len(outputs) == 1:
                self._meet(node.operand, "=", outputs[0][1])
            return types.BOOL
        for item in node.items:
            self.expression(item, scope)
            if isinstance(item, nodes.RowConstructor) or isinstance(node.operand, nodes.RowConstructor):
                self.typing.compare(node.operand, "=", item)
            elif are_unlike(node.operand, item):
                raise no_operator(node.operand.oid, "=", item.oid)
        if not isinstance(node.operand, nodes.RowConstructor) and self.typing.unify([node.operand, *node.items]) == types.UNKNOWN:
            for item in (node.operand, *node.items):
                self.typing.resolve_as_text(item)
        return types.BOOL

    def _meet(self, expression: Expression, operator: str, oid: int | None) -> None:
        """Analyse an expression that is compared with values of the type `oid`."""
        if clash(expression.oid, oid):
            raise no_operator(expression.oid, operator, oid)
        if is_known(oid) and oid is not None:
            self.typing.resolve(expression, oid)
            self.typing.coerce(expression, oid)
            if oid == types.JSONB and not isinstance(expression, nodes.ColumnRef):
                self.typing.write_jsonb(expression)
        else:
            self.typing.resolve_as_text(expression)

    def _quantified(self, node: nodes.Quantified, scope: Scope) -> int | None:
        self.expression(node.left, scope)
        is_in = (node.operator in ("=", "==") and node.quantifier == "ANY") or (node.operator in ("<>", "!=") and node.quantifier == "ALL")
        if not is_in:
            raise SqlError(
                "0A000",
                f"{node.operator} {node.quantifier} (…) is not available",
                hint="There are = ANY (…) and <> ALL (…); for others write EXISTS with a subquery.",
            )
        if node.query is not None:
            outputs = self.query(node.query, scope)
            if outputs and len(outputs) == 1:
                self._meet(node.left, node.operator, outputs[0][1])
            return types.BOOL
        assert node.right is not None, "there is either a query or an array"
        self._array_operand(node.left, node.right, scope)
        return types.BOOL

    def _array_operand(self, left: Expression, array: Expression, scope: Scope) -> None:
        if isinstance(array, nodes.ArrayConstructor) and array.query is None:
            for item in array.items:
                self.expression(item, scope)
            if self.typing.unify([left, *array.items]) == types.UNKNOWN:
                for item in (left, *array.items):
                    self.typing.resolve_as_text(item)
            for item in array.items:
                if are_unlike(left, item):
                    raise no_operator(left.oid, "=", item.oid)
            return
        oid = self.expression(array, scope)
        if oid == types.UNKNOWN:
            element = left.oid if left.oid in ARRAY_OF else types.TEXT
            self.typing.resolve(array, ARRAY_OF[element or types.TEXT])
            oid = array.oid
        if oid not in ELEMENT_OF:
            raise SqlError("42809", "op ANY/ALL (array) requires array on right side", hint="Send an array parameter, or write IN (…).")
        self._meet(left, "=", ELEMENT_OF[oid])

    # Subqueries.

    def _exists(self, node: nodes.Exists, scope: Scope) -> int | None:
        self.query(node.query, scope)
        return types.BOOL

    def _subquery(self, node: nodes.Subquery, scope: Scope) -> int | None:
        outputs = self.query(node.query, scope)
        node.width = None if outputs is None else len(outputs)
        if not outputs or len(outputs) != 1:
            return None
        return types.TEXT if outputs[0][1] == types.UNKNOWN else outputs[0][1]

    # Other expressions.

    def _case(self, node: nodes.Case, scope: Scope) -> int | None:
        if node.operand is not None:
            self.expression(node.operand, scope)
        for condition, result in node.branches:
            if node.operand is None:
                self.condition(condition, scope, "CASE/WHEN")
            else:
                self.expression(condition, scope)
                self.typing.compare(node.operand, "=", condition)
            self.expression(result, scope)
        if node.otherwise is not None:
            self.expression(node.otherwise, scope)
        results = [result for _, result in node.branches]
        return self.typing.unify([*results, node.otherwise] if node.otherwise is not None else results, is_result=True)

    def _cast(self, node: nodes.Cast, scope: Scope) -> int | None:
        if node.type.dimensions:
            return self._cast_to_array(node, scope)
        oid, _ = type_of_name(node.type)
        if isinstance(node.operand, nodes.ArrayConstructor):
            raise SqlError("42846", f"cannot cast an array to {node.type.name}")
        source = self.expression(node.operand, scope)
        if source == types.UNKNOWN:
            # A constant is converted to the type; an expression of constants has become text.
            self.typing.resolve(node.operand, oid if isinstance(_uncollated(node.operand), nodes.Literal | nodes.Parameter) else types.TEXT)
        elif source is not None and not has_cast(source, oid) and node.type.name != "blob":
            raise SqlError("42846", f"cannot cast type {SHOWN[source]} to {SHOWN[oid]}", hint="Cast to text first.")
        return oid if oid in CAST_NAMES else types.TEXT

    def _cast_to_array(self, node: nodes.Cast, scope: Scope) -> int | None:
        element, _ = type_of_name(nodes.TypeName(node.type.start, node.type.end, node.type.name, node.type.modifiers))
        oid = ARRAY_OF.get(element)
        if oid is None or node.type.dimensions > 1:
            raise SqlError("0A000", f"arrays of {node.type.name} are not available")
        if self.expression(node.operand, scope) == types.UNKNOWN:
            self.typing.resolve(node.operand, oid)
        return oid

    def _collate(self, node: nodes.Collate, scope: Scope) -> int | None:
        return self.expression(node.operand, scope)

    def _at_time_zone(self, node: nodes.AtTimeZone, scope: Scope) -> int | None:
        oid = self.expression(node.operand, scope)
        self.expression(node.zone, scope)
        if not (isinstance(node.zone, nodes.Literal) and node.zone.value.upper() in ("UTC", "GMT", "Z", "ETC/UTC")):
            raise SqlError("0A000", "AT TIME ZONE is available for 'UTC' only", hint="Convert to another zone in the client.")
        node.zone.oid = types.TEXT
        if oid == types.UNKNOWN or oid == types.DATE:
            self.typing.resolve(node.operand, types.TIMESTAMPTZ)
            oid = types.TIMESTAMPTZ
        if oid not in (types.TIMESTAMP, types.TIMESTAMPTZ):
            raise SqlError("42883", "AT TIME ZONE requires a timestamp", hint="Cast it: value::timestamp.")
        return types.TIMESTAMP if oid == types.TIMESTAMPTZ else types.TIMESTAMPTZ

    def _row(self, node: nodes.RowConstructor, scope: Scope) -> int | None:
        for item in node.items:
            self.expression(item, scope)
        return None

    def _array(self, node: nodes.ArrayConstructor, scope: Scope) -> int | None:
        raise SqlError("0A000", "arrays are available in = ANY (…) and <> ALL (…) only", hint="Use one row for each element.")

    def _subscript(self, node: nodes.Subscript, scope: Scope) -> int | None:
        raise SqlError("0A000", "elements of arrays are not available: no column holds an array")

    def _call(self, node: nodes.Call, scope: Scope) -> int | None:
        for argument in node.arguments:
            self.expression(argument, scope)
        for sort in (*node.order, *node.within):
            check_ordered(self.expression(sort.expression, scope))
        if node.filter is not None:
            self.condition(node.filter, scope, "FILTER")
        if node.window is not None:
            self.window(node.window, scope)
        return call_type(node, self.typing)


def _uncollated(expression: Expression) -> Expression:
    while isinstance(expression, nodes.Collate):
        expression = expression.operand
    return expression
