"""CREATE VIEW stores a query that SQLite cannot prepare."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import stored_queries

TESTS = ["tests/unit/sql/executor/test_stored_queries.py::test_a_view_that_sqlite_cannot_compute_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(stored_queries, "view_fault", lambda *_: None)
