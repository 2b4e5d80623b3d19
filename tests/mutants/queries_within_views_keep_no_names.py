"""Queries within views name their results by the tables' columns, which may be renamed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/rewrite/test_create_view.py::test_a_column_that_a_view_takes_out_of_a_query_within_is_renamed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.translate.render_queries import StatementRenderer

    patch(StatementRenderer, "_keep_names", lambda self, query: None)
