"""A query that has waited for the session's position runs as it was planned for the schema before."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine import read_admission, session

TESTS = [
    "tests/unit/sql/engine/test_read_admission.py::test_a_query_that_waits_for_another_schema_is_planned_again[ReadLevel.SESSION-False]",
    "tests/unit/sql/engine/test_read_admission.py::test_a_query_that_waits_for_another_schema_is_planned_again[ReadLevel.BOUNDED-True]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for module in (session, read_admission):
        patch(module, "check_schema", lambda planned_for, version: None)
