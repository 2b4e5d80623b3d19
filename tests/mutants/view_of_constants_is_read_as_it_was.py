"""The program of a query over a view that reads no table is kept, and SQLite does not notice that the view has changed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.examined_schema import ExaminedSchema

TESTS = ["tests/unit/sql/engine/test_session_short_reads.py::test_a_view_of_constants_is_read_as_it_is_now"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ExaminedSchema, "has_only_views", lambda _self, names: False)
