"""An error of a value does not say that a trigger may have computed it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/executor/test_violations.py::test_a_value_that_cannot_be_computed_names_the_triggers_that_compute"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor import violations

    patch(violations, "_computing_triggers", lambda connection, sql: [])
