"""Placement regards each bookie as a machine of its own, so the copies of an entry may share one."""

from collections.abc import Callable

from triplicate.ledger import PlacementRules

TESTS = [
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_copies_are_on_different_machines",
    "tests/unit/client/test_cluster_placement.py::test_a_ledger_is_created_on_different_machines",
    "tests/property/test_ensemble_choice.py::test_a_new_ensemble_keeps_the_rules_if_any_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def none(self: PlacementRules) -> set[str]:
        return set()

    patch(PlacementRules, "machines", none)
