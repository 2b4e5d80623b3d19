"""ADD COLUMN stores its default in existing rows without checking it against the column's type."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import definitions

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_default_that_does_not_fit_reaches_no_row"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(definitions, "_check_added", lambda _connection, _sql: None)
