"""An enforced number of racks is relaxed like a preferred one."""

from collections.abc import Callable
from dataclasses import replace

from triplicate.ledger import PlacementRules
from triplicate.ledger.placement.placement_rules import Demand

TESTS = [
    "tests/unit/client/test_cluster_placement.py::test_enforced_racks_are_kept_or_the_creation_fails",
    "tests/property/test_ensemble_choice.py::test_a_new_ensemble_keeps_the_rules_if_any_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    relaxations = PlacementRules.relaxations

    def preferred(self: PlacementRules, strict: Demand) -> list[Demand]:
        return relaxations(replace(self, policy=replace(self.policy, enforced=False)), strict)

    patch(PlacementRules, "relaxations", preferred)
