"""The divisor goes to SQLite unchecked, which answers NULL for zero."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import scalars

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_an_expression_fails_with_postgresql_s_error[a / (a - a)-22012]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(scalars, "_divisor", lambda value, dividend: value)
