"""Queries within others name their results as SQLite does: by the tables' columns, which may be renamed, and by the texts of expressions."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/pg/rewrite/test_create_view.py::test_a_column_that_a_view_takes_out_of_a_query_within_is_renamed",
    "tests/unit/sql/pg/translate/test_translation.py::test_results_of_subqueries_have_the_names_that_postgresql_gives_them",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.translate.render_queries import StatementRenderer

    patch(StatementRenderer, "_keep_names", lambda self, query: None)
