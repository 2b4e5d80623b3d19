"""Bookies are drawn uniformly although the policy weighs their free disk."""

from collections.abc import Callable

from triplicate.ledger.placement import ensemble_choice
from triplicate.ledger.placement.ensemble_choice import RandomSource
from triplicate.ledger.placement.placement_rules import PlacementRules

TESTS = ["tests/unit/ledger/placement/test_ensemble_choice.py::test_bookies_with_more_free_disk_are_chosen_more_often"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def uniform(names: list[str], rng: RandomSource, rules: PlacementRules) -> list[str]:
        return rng.sample(names, len(names))

    patch(ensemble_choice, "_weighted", uniform)
