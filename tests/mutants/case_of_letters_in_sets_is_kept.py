"""A match without case does not fold the letters of sets."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import regular_expressions

TESTS = ["tests/unit/sql/pg/values/test_regular_expressions.py::test_a_match_without_case_takes_the_letters_of_ascii"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(regular_expressions, "_with_other_case", regular_expressions._union)
