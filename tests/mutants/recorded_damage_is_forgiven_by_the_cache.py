"""A worker asks the bookie whether its recorded copies are damaged, and believes an answer that comes from memory."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_ledger_repair_damaged_copies.py::test_a_recorded_copy_is_replaced_although_its_bookie_delivers_it_intact"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_repair import RepairRun

    patch(RepairRun, "_store_again", _asking(RepairRun._store_again))


def _asking(original: object) -> object:
    from triplicate.autorecovery.core.fragments import LedgerFragment
    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate.autorecovery.repair_tools import BookieStates
    from triplicate.ledger import LedgerMetadata

    async def store_again(
        self: RepairRun, metadata: LedgerMetadata, fragment: LedgerFragment, entry_ids: list[int], states: BookieStates
    ) -> bool:
        damaged = await self._copier(metadata).damaged(fragment, entry_ids)
        return bool(await original(self, metadata, fragment, damaged, states))  # type: ignore[operator]

    return store_again
