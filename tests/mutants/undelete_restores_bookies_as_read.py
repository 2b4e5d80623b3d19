"""An undelete restores the metadata that it has read, also if the trash names other bookies by then."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import LedgerMetadata
from triplicate.metadata import CheckVersion, LedgerStore, Versioned

TESTS = ["tests/unit/metadata/test_trash_changes.py::test_the_undelete_sees_a_change_behind_its_reading"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    restore = LedgerStore.restore

    async def unguarded(
        store: LedgerStore, ledger_id: int, metadata: LedgerMetadata, above_version: int, guard: CheckVersion | None = None
    ) -> Versioned:
        return await restore(store, ledger_id, metadata, above_version)

    patch(LedgerStore, "restore", unguarded)
