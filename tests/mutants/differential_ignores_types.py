"""The comparison with PostgreSQL accepts columns of any two types as equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential import comparison

TESTS = [
    "tests/differential/test_comparison.py::test_every_part_of_an_answer_is_compared",
    "tests/differential/test_comparison.py::test_answers_of_a_server_keep_what_differs",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def same(one: Sequence[int], other: Sequence[int]) -> bool:
        return True

    patch(comparison, "same_types", same)
