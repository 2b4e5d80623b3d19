"""A worker holds a damaged copy to be replaced as soon as its bookie has acknowledged the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = ["tests/unit/autorecovery/test_ledger_repair_damaged_copies.py::test_a_fragment_whose_bookie_keeps_damaged_copies_moves"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.fragments import LedgerFragment
    from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier

    right_copy, right_damaged = LedgerCopier.copy, LedgerCopier.damaged
    stored: set[LedgerFragment] = set()

    async def copy(self: LedgerCopier, job: CopyJob) -> None:
        await right_copy(self, job)
        stored.add(job.fragment)

    async def damaged(self: LedgerCopier, fragment: LedgerFragment, entry_ids: Iterable[int]) -> list[int]:
        return [] if fragment in stored else await right_damaged(self, fragment, entry_ids)

    patch(LedgerCopier, "copy", copy)
    patch(LedgerCopier, "damaged", damaged)
