"""A bookie with replaced disks assumes of every ledger in the trash that it may have held it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.limbo import Limbo
from triplicate.metadata import TrashedLedger, Versioned

TESTS = [
    "tests/unit/bookie/offline/test_replacement.py::test_a_ledger_made_since_that_was_deleted_and_comes_back_is_served_as_by_any_bookie",
    "tests/simulation/test_found.py::test_a_replaced_bookie_knows_that_a_ledger_in_the_trash_is_newer_than_its_disks",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = Limbo._may_have_held

    async def may_have_held(self: Limbo, ledger_id: int, found: Versioned | TrashedLedger) -> bool:
        return isinstance(found, TrashedLedger) or await right(self, ledger_id, found)

    patch(Limbo, "_may_have_held", may_have_held)
