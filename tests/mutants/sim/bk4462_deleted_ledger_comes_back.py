"""A bookie forgets a ledger's fence when the ledger is deleted, so its old writer continues (BookKeeper issue 4462)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerTable
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    def forget(self: LedgerTable, ledger_id: int) -> None:
        handle = self._handles.pop(ledger_id, None)
        self._dirty.pop(ledger_id, None)
        if handle is not None:
            handle.forget()

    def delete_ledgers(self: LedgerStorage, flush_number: int, ledger_ids: Sequence[int], fenced: object, up_to_flush: int) -> bool:
        self.index.delete_ledgers(ledger_ids, up_to_flush)
        return False

    patch(LedgerTable, "forget", forget)
    patch(LedgerStorage, "delete_ledgers", delete_ledgers)
