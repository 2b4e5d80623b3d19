"""A failed position may get a bookie of a machine that has another copy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from triplicate import ledger
from triplicate.autorecovery import ledger_repair
from triplicate.client import ledger_recovery
from triplicate.ledger import PlacementRules, ensemble_change
from triplicate.ledger.placement import ensemble_choice
from triplicate.ledger.placement.ensemble_choice import RandomSource

TESTS = [
    "tests/unit/client/write/test_ensemble_changer.py::test_a_dead_bookie_is_replaced_by_one_on_another_machine",
    "tests/unit/client/test_ledger_recovery.py::test_a_recovery_replaces_a_bookie_by_one_on_another_machine",
    "tests/unit/autorecovery/test_worker.py::test_copies_are_made_on_another_machine_or_not_at_all",
    "tests/unit/autorecovery/test_worker.py::test_copies_are_placed_by_the_rules_of_placement",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    replace_bookies = ensemble_choice.replace_bookies

    def anywhere(
        ensemble: Sequence[str],
        failed: Collection[int],
        writable: Iterable[str],
        rng: RandomSource,
        avoid: Collection[str] = (),
        rules: PlacementRules | None = None,
    ) -> tuple[str, ...]:
        return replace_bookies(ensemble, failed, writable, rng, avoid)

    for module in (ledger, ensemble_change, ledger_recovery, ledger_repair):
        patch(module, "replace_bookies", anywhere)
