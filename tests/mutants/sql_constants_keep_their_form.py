"""A constant is compared in the form it is written in, so ``'2024-1-5'`` equals no date."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.lexer import quote_string
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.render import Renderer

TESTS = [
    (
        "tests/unit/sql/executor/test_scalars.py::test_a_statement_gives_postgresql_s_rows"
        "[select id from t where d in ('2024-1-5', '2024-02-29') order by 1-expected9]"
    ),
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_written(self: Renderer, node: nodes.Literal, _oid: int, _modifiers: tuple[int, ...]) -> None:
        self.add(quote_string(node.value), node)

    patch(Renderer, "_constant", as_written)
