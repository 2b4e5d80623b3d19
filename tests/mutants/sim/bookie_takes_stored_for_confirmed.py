"""A bookie tells those who wait for the last-add-confirmed of entries that it stores, confirmed or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.storage import Storage

    store = Storage.store

    def and_confirm(self: Storage, handle: LedgerHandle, entry_ids: Sequence[int], entries: list[bytes], last_add_confirmed: int) -> None:
        store(self, handle, entry_ids, entries, last_add_confirmed)
        handle.learn_lac(handle.last_entry_id)

    patch(Storage, "store", and_confirm)
