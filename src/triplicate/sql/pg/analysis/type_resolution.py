"""Type resolution: the common type of expressions, and the types of constants and parameters from their contexts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.name_scope import Parameters
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import INTEGERS, MOMENTS, NUMBERS, SHOWN, TEXTS

_RANKS = {types.INT2: 0, types.INT4: 1, types.OID: 1, types.INT8: 2, types.NUMERIC: 3, types.FLOAT4: 4, types.FLOAT8: 5}
_FLOATS = (types.FLOAT4, types.FLOAT8)
_MOMENT_RANKS = {types.DATE: 0, types.TIMESTAMP: 1, types.TIMESTAMPTZ: 2}


def is_known(oid: int | None) -> bool:
    return oid is not None and oid != types.UNKNOWN


def common_type(oids: Iterable[int | None]) -> int | None:
    """The common type of these types; None if they have none, or none is known."""
    distinct = {oid for oid in oids if oid is not None and oid != types.UNKNOWN}
    if len(distinct) <= 1:
        return next(iter(distinct), None)
    if distinct <= _RANKS.keys():
        return max(distinct, key=_RANKS.__getitem__)
    if distinct <= _MOMENT_RANKS.keys():
        return max(distinct, key=_MOMENT_RANKS.__getitem__)
    if distinct <= set(TEXTS):
        return types.TEXT
    if distinct <= {types.BOOL, *INTEGERS}:
        # SQLite's booleans are integers, and statements for SQLite write them as integers.
        return types.BOOL
    return None


def clash(left: int | None, right: int | None) -> bool:
    """Whether the types are known to be incomparable. SQLite would compare text with a number and always find the text larger."""
    pair = (left, right)
    for one, other in (pair, pair[::-1]):
        if one in NUMBERS and (other in TEXTS or other in MOMENTS or other in (types.UUID, types.BYTEA)):
            return True
        if one == types.BOOL and (other in TEXTS or other in MOMENTS or other in (types.FLOAT8, types.NUMERIC, types.UUID, types.BYTEA)):
            return True
        if (one, other) == (types.JSON, types.JSONB):
            return True
        if one == types.BYTEA and (other in TEXTS or other in MOMENTS):
            return True
    return False


def cannot_unite(left: int | None, right: int | None) -> bool:
    """Whether columns of these types are known to be incompatible in a set operation."""
    if left is None or right is None or types.UNKNOWN in (left, right):
        return False
    groups: tuple[tuple[int, ...], ...] = (
        tuple(NUMBERS), tuple(TEXTS), tuple(MOMENTS), (types.BOOL, *INTEGERS), (types.UUID,), (types.BYTEA,)
    )  # fmt: skip
    inside = [{index for index, group in enumerate(groups) if oid in group} for oid in (left, right)]
    return bool(inside[0]) and bool(inside[1]) and not inside[0] & inside[1]


def _is_text_beside_a_moment(left: Expression, right: Expression) -> bool:
    """Whether a value declared as text is compared with a date, a time or a UUID. It would only match the stored form."""
    is_declared = isinstance(left, nodes.Parameter | nodes.Cast) and left.oid in TEXTS
    return is_declared and (right.oid in MOMENTS or right.oid == types.UUID)


def are_unlike(left: Expression, right: Expression) -> bool:
    """Whether PostgreSQL has no comparison of the two."""
    return clash(left.oid, right.oid) or _is_text_beside_a_moment(left, right) or _is_text_beside_a_moment(right, left)


def _is_stored(expression: Expression) -> bool:
    return isinstance(expression, nodes.ColumnRef) and not expression.is_computed


def check_ordered(*oids: int | None) -> None:
    """Raises SqlError 0A000 for jsonb: SQLite has only the order of its texts."""
    if types.JSONB in oids:
        raise SqlError(
            "0A000",
            "jsonb values have no order here: <, >, BETWEEN and ORDER BY are not available for them",
            hint="Order by a field of a type, (value ->> 'a')::numeric, or by the text, value::text.",
        )


def no_operator(left: int | None, operator: str, right: int | None) -> SqlError:
    """The error for an operator that PostgreSQL does not have for two types."""
    shown = f"{SHOWN.get(left or 0, 'unknown')} {operator} {SHOWN.get(right or 0, 'unknown')}"
    return SqlError("42883", f"operator does not exist: {shown}", hint="Cast one side to the type of the other: value::type.")


class TypeResolver:
    """Resolves constants and parameters to the types of their contexts."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def resolve(self, expression: Expression, oid: int) -> None:
        """Resolve an expression of unknown type that is used as a value of this type."""
        if expression.oid != types.UNKNOWN:
            return
        match expression:
            case nodes.Parameter():
                expression.oid = self.parameters.declare(expression.number, oid)
            case nodes.Literal(kind="string"):
                expression.oid = expression.as_oid = oid
            case nodes.Case():
                for _, result in expression.branches:
                    self.resolve(result, oid)
                if expression.otherwise is not None:
                    self.resolve(expression.otherwise, oid)
                expression.oid = oid
            case nodes.Call():
                for argument in expression.arguments:
                    self.resolve(argument, oid)
                expression.oid = oid
            case nodes.Collate():
                self.resolve(expression.operand, oid)
                expression.oid = oid
            case nodes.Subquery():
                expression.oid = types.TEXT
            case _:
                expression.oid = oid

    def unify(self, expressions: Sequence[Expression], *, is_result: bool = False) -> int | None:
        """Resolve the common type; constants and parameters get it, dates and timestamps are converted to it.

        Args:
            is_result: whether the value is one of them. An integer then becomes a float, because SQLite would truncate its division.
        """
        target = common_type(expression.oid for expression in expressions)
        if target is None:
            if all(expression.oid == types.UNKNOWN for expression in expressions):
                return types.UNKNOWN
            return None
        for expression in expressions:
            if expression.oid == types.UNKNOWN:
                self.resolve(expression, target)
            elif is_result and target in _FLOATS and expression.oid != target and expression.oid in NUMBERS:
                expression.as_oid = target
            else:
                self.coerce(expression, target)
        if target == types.JSONB and (is_result or not _is_stored(expressions[0])) and not all(map(_is_stored, expressions)):
            for expression in expressions:
                self.write_jsonb(expression)
        if any(expression.oid is None for expression in expressions):
            return None
        return target

    @staticmethod
    def write_jsonb(expression: Expression) -> None:
        """Have jsonb that is only a number as text. A column stores it as a number, which SQLite compares with a text only where the column
        itself stands beside it."""
        inner = expression.operand if isinstance(expression, nodes.Cast) else expression
        if expression.oid == types.JSONB and not isinstance(inner, nodes.Literal | nodes.Parameter):
            expression.as_oid = types.JSONB

    def coerce(self, expression: Expression, target: int) -> None:
        """Convert a date or timestamp to the type of its context, if that is another one of these types."""
        if expression.oid in _MOMENT_RANKS and target in _MOMENT_RANKS and expression.oid != target:
            expression.as_oid = target

    def resolve_as_text(self, expression: Expression) -> None:
        """Resolve an expression that still has no type to text."""
        self.resolve(expression, types.TEXT)

    def compare(self, left: Expression, operator: str, right: Expression) -> None:
        """Resolve both sides of a comparison to one type. Raises SqlError 42883 if there is none."""
        if isinstance(left, nodes.RowConstructor) and isinstance(right, nodes.RowConstructor) and len(left.items) == len(right.items):
            for one, other in zip(left.items, right.items, strict=True):
                self.compare(one, operator, other)
            return
        if are_unlike(left, right):
            raise no_operator(left.oid, operator, right.oid)
        if operator not in ("=", "==", "<>", "!="):
            check_ordered(left.oid, right.oid)
        if self.unify([left, right]) == types.UNKNOWN:
            self.resolve_as_text(left)
            self.resolve_as_text(right)

    def assign(self, expression: Expression, target: int | None, column: str, modifiers: tuple[int, ...] = ()) -> None:
        """Resolve an expression that is stored in a column of the type `target`. With precision and scale it is rounded.

        Raises:
            SqlError: 42804 if PostgreSQL has no such conversion and SQLite would store another value.
        """
        if target is None:
            return
        source = expression.oid
        expression.is_stored = True
        if modifiers and (source == types.UNKNOWN or source in NUMBERS):
            self.resolve(expression, target)
            expression.as_oid, expression.as_modifiers = target, modifiers
            return
        if source == types.UNKNOWN:
            self.resolve(expression, target)
            return
        if target == types.NUMERIC == source and not isinstance(expression, nodes.ColumnRef | nodes.Parameter):
            expression.as_oid = target
            return
        inner = expression.operand if isinstance(expression, nodes.Unary) else expression
        if source == types.NUMERIC and target == types.FLOAT8 and not isinstance(inner, nodes.ColumnRef | nodes.Parameter):
            inner.as_oid = target  # A numeric that no float is would become 0 or infinity. A column holds none.
            return
        if source is None or source == target:
            return
        if source in NUMBERS and (target in MOMENTS or target in (types.UUID, types.BYTEA, types.JSON, types.JSONB)):
            raise SqlError(
                "42804",
                f'column "{column}" is of type {SHOWN[target]} but expression is of type {SHOWN[source]}',
                hint="You will need to rewrite or cast the expression.",
            )
        converts = (
            (target in INTEGERS and source in (types.FLOAT4, types.FLOAT8, types.NUMERIC, *TEXTS))
            or (target in TEXTS and source in (types.BOOL, types.FLOAT4, types.FLOAT8, types.TIMESTAMPTZ))
            or (target in MOMENTS and source in (*MOMENTS, *TEXTS))
            or (target, source) == (types.JSONB, types.JSON)
            or (target == types.NUMERIC and source in _FLOATS)
            or (target in (types.BOOL, types.UUID, types.NUMERIC, types.FLOAT8) and source in TEXTS)
        )
        if converts:
            expression.as_oid = target
