"""A change of an ensemble goes through all sets of failed positions, however many there are."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/ledger/placement/test_ensemble_choice.py::test_a_replacement_of_many_bookies_gives_up_after_a_limit"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.placement import ensemble_choice

    patch(ensemble_choice, "CHANGE_STEPS", 10**9)
