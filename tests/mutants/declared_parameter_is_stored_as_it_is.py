"""A parameter whose type the client declares is stored in a column of another type as it was sent."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis.type_resolution import TypeResolver
from triplicate.sql.pg.syntax import nodes

TESTS = ["tests/unit/sql/pg/analysis/test_type_resolution_parameters.py::test_a_declared_parameter_is_cast_to_its_column"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    assign = TypeResolver.assign

    def but_parameters(
        self: TypeResolver, expression: nodes.Expression, target: int | None, column: str, modifiers: tuple[int, ...] = ()
    ) -> None:
        if not isinstance(expression, nodes.Parameter):
            assign(self, expression, target, column, modifiers)

    patch(TypeResolver, "assign", but_parameters)
