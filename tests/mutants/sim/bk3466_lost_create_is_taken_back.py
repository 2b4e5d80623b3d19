"""A create whose answer was lost is repeated, and then the first attempt's node is deleted (BookKeeper issue 3466)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("acknowledged_is_readable", "failed")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import ConnectionLost
    from triplicate.ledger import LedgerMetadata, encode_metadata
    from triplicate.metadata import LedgerStore, Versioned

    create = LedgerStore.create

    async def and_cleaned_up(self: LedgerStore, ledger_id: int, metadata: LedgerMetadata) -> Versioned:
        try:
            await self._tree.create(self._path(ledger_id), encode_metadata(metadata), parents=True)
        except ConnectionLost:
            created = await create(self, ledger_id, metadata)
            await self.delete(ledger_id)
            return created
        return Versioned(metadata, 0)

    patch(LedgerStore, "create", and_cleaned_up)
