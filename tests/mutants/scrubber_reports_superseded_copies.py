"""The scrubber reports a damaged copy although a newer copy of the entry is read in its place."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_scrubber.py::test_an_entry_that_is_stored_again_counts_in_its_new_place"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.entry_log_format import BlockInfo
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    def copy_counts(self: LedgerStorage, log: int, run: BlockInfo, entry_id: int) -> bool:
        return True

    patch(LedgerStorage, "copy_counts", copy_counts)
