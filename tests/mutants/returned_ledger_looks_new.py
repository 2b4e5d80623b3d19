"""An undeleted ledger takes the time of its undeletion as its creation time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import Trash, TrashedLedger, Versioned

TESTS = [
    "tests/unit/bookie/offline/test_replacement.py::test_an_old_ledger_of_a_chosen_id_that_comes_back_does_not_look_new",
    "tests/simulation/test_found.py::test_a_replaced_bookie_does_not_treat_an_undeleted_old_ledger_as_new",
]


async def first_created_ms(self: Trash, ledger_id: int, found: Versioned | TrashedLedger) -> int:
    return found.created_ms


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Trash, "first_created_ms", first_created_ms)
