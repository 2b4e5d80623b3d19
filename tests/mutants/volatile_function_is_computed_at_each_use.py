"""A subquery that calls a function like random() is merged into the query around it, which computes it at each use."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate import render_queries, translation

TESTS = [
    "tests/unit/sql/pg/translate/test_render_queries_volatile.py::test_all_uses_of_a_column_have_the_same_value",
    "tests/unit/sql/pg/translate/test_render_queries_volatile.py::test_a_view_computes_a_row_once_and_another_one_each_time",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for module in (render_queries, translation):
        patch(module, "is_volatile", lambda query: False)
