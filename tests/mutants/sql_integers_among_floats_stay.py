"""Where CASE or coalesce mixes integers and floats, the integer stays an integer, and its division truncates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.pg.analysis.type_resolution import TypeResolver
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.translate.render_numbers import NumberRenderer

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_an_expression_has_postgresql_s_value[case when a < 0 then c else a end / 8-2.5]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    unify = TypeResolver.unify

    def compared(self: TypeResolver, expressions: Sequence[Expression], *, is_result: bool = False) -> int | None:
        return unify(self, expressions)

    patch(TypeResolver, "unify", compared)
    patch(NumberRenderer, "_float_arithmetic", NumberRenderer.verbatim)
