"""A subquery in SET of an UPDATE sees rows that the same statement has changed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate import render_queries

TESTS = ["tests/unit/sql/pg/translate/test_translation.py::test_a_query_in_set_is_computed_before_rows_change"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(render_queries, "has_query", lambda _node: False)
