"""A worker holds a damaged copy to be replaced as soon as its bookie has acknowledged the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = ["tests/unit/autorecovery/test_ledger_repair_damaged_copies.py::test_a_fragment_whose_bookie_keeps_damaged_copies_moves"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.fragments import LedgerFragment
    from triplicate.autorecovery.ledger_copier import LedgerCopier

    right = LedgerCopier.damaged

    async def damaged(self: LedgerCopier, fragment: LedgerFragment, entry_ids: Iterable[int]) -> list[int]:
        first = not getattr(self, "was_asked", False)
        self.was_asked = True  # type: ignore[attr-defined]
        return await right(self, fragment, entry_ids) if first else []

    patch(LedgerCopier, "damaged", damaged)
