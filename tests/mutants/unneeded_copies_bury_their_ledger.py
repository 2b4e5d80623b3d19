"""The ledger of unneeded copies is deleted whole, so that the bookie refuses the recovery adds of a later repair."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_unneeded_copies.py::test_a_bookie_whose_copies_were_deleted_accepts_them_again_from_a_worker[True]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.storage import Storage

    async def bury(self: Storage, ledger_id: int, up_to_flush: int) -> None:
        await self.delete_ledgers([ledger_id])

    patch(Storage, "delete_copies", bury)
