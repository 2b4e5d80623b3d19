"""A cast of a text to a number counts as cheap, though it may make 131,072 digits."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core import bounded_program

TESTS = ["tests/unit/sql/core/test_bounded_program.py::test_a_text_that_becomes_a_number_has_no_small_cost"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(bounded_program, "_TO_NUMERIC", "")
