"""A regular expression of any size is matched against a text of any length, which nothing interrupts."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import regular_expressions

TESTS = ["tests/unit/sql/pg/values/test_regular_expressions.py::test_the_size_of_an_expression_limits_the_text"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(regular_expressions, "_WORK_MAX", 100_000_000_000)
