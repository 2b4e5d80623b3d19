"""NULLs sort first in ascending order, as in SQLite, if the query does not say otherwise."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.render_queries import StatementRenderer

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_a_statement_gives_postgresql_s_rows[select id from t order by a-expected0]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def unsaid(self: StatementRenderer, node: nodes.Sort) -> None:
        self.verbatim(node)

    patch(StatementRenderer, "_sort", unsaid)
