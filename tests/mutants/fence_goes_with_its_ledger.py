"""The fence of a deleted ledger is kept in memory only, so after a restart its old writer can recreate the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/bookie/storage/test_index_deleted_fences.py::test_a_fence_outlives_its_ledger_and_a_loss_of_power"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    def forget(self: LedgerStorage, flush_number: int, ledger_ids: Sequence[int], fenced: object, up_to_flush: int) -> bool:
        self.index.delete_ledgers(ledger_ids)
        return False

    patch(LedgerStorage, "delete_ledgers", forget)
