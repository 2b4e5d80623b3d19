"""The computed columns of a view have no types where the view is used."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage import sqlite_schema

TESTS = ["tests/unit/sql/pg/rewrite/test_create_view.py::test_a_query_over_a_view_has_the_types_of_the_views_query"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_schema, "view_columns", lambda _sql, columns: columns)
