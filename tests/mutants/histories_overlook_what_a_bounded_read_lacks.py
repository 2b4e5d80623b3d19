"""The judge of the histories accepts bounded reads of any age."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.histories import levels

TESTS = ["tests/unit/benchmarks/histories/test_levels.py::test_a_read_has_the_marks_of_its_level"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(levels, "CLOCK_ERROR", 1e9)
