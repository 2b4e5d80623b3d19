"""A rearrangement tries all sets of other bookies, also those that need more spare bookies than there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

TESTS = ["tests/unit/ledger/placement/test_ensemble_choice.py::test_a_wide_ensemble_without_spare_bookies_is_given_up_early"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.placement import ensemble_choice

    def moves(others: Sequence[int], count: int, unwritable: object, surplus: int) -> Iterator[tuple[int, ...]]:
        yield from combinations(others, count)

    patch(ensemble_choice, "_moves", moves)
