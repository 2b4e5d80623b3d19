"""``value::type`` gives the value without a cast."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.render import Renderer

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_an_expression_has_postgresql_s_value[a::text-20]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def ignored(self: Renderer, node: nodes.Cast) -> None:
        self.write(node.operand)

    patch(Renderer, "_cast", ignored)
