"""The last confirmed entry is taken for the last one that may have been acknowledged, and a copy without it for a recent one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import LedgerReader
from triplicate.ledger import Entry

TESTS = [
    "tests/unit/client/read/test_ledger_reader_last_written.py::test_an_acknowledged_entry_counts_before_anything_says_that_it_is_confirmed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def confirmed(self: LedgerReader) -> Entry | None:
        last = await self.read_last_confirmed()
        return (await self.read(last, last))[0] if last >= 0 else None

    patch(LedgerReader, "read_last_written", confirmed)
