"""A ledger is created on bookies in too few fault domains, so none of its entries is ever acknowledged."""

from collections.abc import Callable

from triplicate.ledger import PlacementRules
from triplicate.ledger.placement.placement_rules import Demand

TESTS = [
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_the_domains_of_acknowledgements_are_enforced",
    "tests/unit/client/write/test_ledger_writer_ack_domains.py::test_a_ledger_in_too_few_domains_is_refused",
    "tests/property/test_ensemble_choice.py::test_a_new_ensemble_keeps_the_rules_if_any_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def least(self: PlacementRules) -> Demand:
        return Demand(len(self.machines()) > 1, 1, 1)

    patch(PlacementRules, "_least", least)
