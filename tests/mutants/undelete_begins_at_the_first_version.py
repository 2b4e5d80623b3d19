"""An undeleted ledger starts at version 0 again, so a client with the old version can change it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import LedgerMetadata
from triplicate.metadata.ledger_store import LedgerStore, Versioned

TESTS = [
    "tests/unit/bookie/storage/test_garbage_trash.py::test_nobody_who_knew_a_ledger_before_its_deletion_changes_it_after_its_return",
    "tests/simulation/test_found.py::test_a_writer_that_was_cut_off_does_not_close_an_undeleted_ledger",
]


async def restore(self: LedgerStore, ledger_id: int, metadata: LedgerMetadata, above_version: int) -> Versioned:
    return await self.create(ledger_id, metadata)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(LedgerStore, "restore", restore)
