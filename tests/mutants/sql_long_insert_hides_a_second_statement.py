"""A long INSERT is taken for one statement although a semicolon is in it, and the statement behind it is dropped without an error."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import authorizer

TESTS = ["tests/unit/sql/executor/test_authorizer.py::test_a_long_insert_is_refused_as_a_short_one_would_be"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(authorizer, "_is_long_insert", lambda sql: len(sql) > authorizer._LONG and sql[:7].upper() == "INSERT ")
