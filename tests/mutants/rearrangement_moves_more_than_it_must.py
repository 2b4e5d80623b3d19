"""A rearrangement may change every position, although fewer changes keep the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = [
    "tests/property/test_ensemble_choice.py::test_a_rearrangement_changes_the_fewest_other_positions",
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_a_rearrangement_that_changes_nobody_else_is_a_replacement",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.placement import ensemble_choice

    def all_of_them(pool: Sequence[int], size: int, unwritable: object, surplus: int) -> list[tuple[int, ...]]:
        return [tuple(pool)]

    patch(ensemble_choice, "_moves", all_of_them)
