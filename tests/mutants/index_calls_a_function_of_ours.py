"""The definition of a table or index may call our functions, which followers and plain SQLite do not have."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import authorizer

TESTS = ["tests/unit/sql/executor/test_authorizer.py::test_the_definition_of_a_table_calls_no_function_of_ours"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(authorizer, "_refuse_ours", lambda _statement: None)
