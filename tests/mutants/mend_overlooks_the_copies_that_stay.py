"""The choice of moves looks at the new bookies only: copies that stay may share a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.ledger.placement import mending
from triplicate.ledger.placement.placement_rules import Demand, PlacementRules

TESTS = [
    "tests/unit/ledger/placement/test_mending.py::test_the_copies_that_stay_may_not_break_the_rule_among_themselves",
    "tests/property/test_mending.py::test_the_fewest_moves_lead_to_the_best_ensemble",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def always(ensemble: Sequence[str], positions: Sequence[int], rules: PlacementRules, demand: Demand) -> bool:
        return True

    patch(mending, "_can_mend", always)
