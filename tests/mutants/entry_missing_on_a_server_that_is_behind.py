"""A reader reports a missing entry without a sync, although a metadata server that is behind shows the same twice."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import LedgerReader

TESTS = [
    "tests/unit/client/read/test_ledger_reader_stale_metadata.py::test_an_entry_is_looked_for_again_after_a_sync[unconfirmed]",
    "tests/unit/client/read/test_ledger_reader_stale_metadata.py::test_an_entry_is_looked_for_again_after_a_sync[confirmed]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def without_a_sync(self: LedgerReader, version: int) -> bool:
        await self.refresh_metadata()
        return self._found.version != version

    patch(LedgerReader, "_has_changed", without_a_sync)
