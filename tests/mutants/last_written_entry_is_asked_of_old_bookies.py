"""The last written entry is asked of the bookies that a metadata server names which may be behind."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import LedgerReader

TESTS = [
    "tests/unit/client/read/test_ledger_reader_stale_metadata.py::test_the_last_written_entry_is_asked_of_bookies_named_after_a_sync",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    refresh = LedgerReader.refresh_metadata

    async def without_sync(self: LedgerReader, *, synced: bool = False) -> None:
        await refresh(self)

    patch(LedgerReader, "refresh_metadata", without_sync)
