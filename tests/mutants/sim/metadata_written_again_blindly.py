"""A change of ledger metadata whose connection was lost is repeated over any newer version."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import BadVersion, ConnectionLost, NoNode
    from triplicate.ledger import LedgerMetadata, encode_metadata
    from triplicate.metadata import LedgerStore, Versioned
    from triplicate.runtime import sleep

    update = LedgerStore.update

    async def until_it_is_there(self: LedgerStore, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned:
        try:
            stat = await self._tree.set(self._path(ledger_id), encode_metadata(metadata), version)
        except (BadVersion, NoNode):
            return await update(self, ledger_id, metadata, version)
        except ConnectionLost:
            await sleep(self._host.clock, 0.02)
            found = await self.get(ledger_id)
            return await until_it_is_there(self, ledger_id, metadata, found.version)
        return Versioned(metadata, stat.version)

    patch(LedgerStore, "update", until_it_is_there)
