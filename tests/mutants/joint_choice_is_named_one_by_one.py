"""A bookie that was chosen beside the successors of other lost bookies is named before these, and may stay beside the lost ones."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_ledger_repair_rearranged.py::test_a_bookie_chosen_beside_successors_of_others_is_named_together_with_them"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_repair
    from triplicate.ledger import PlacementVerdict
    from triplicate.ledger.placement.adherence import STRICT_VERDICT

    def content(ensemble: object, rules: object) -> PlacementVerdict:
        return STRICT_VERDICT

    patch(ledger_repair, "ensemble_verdict", content)
