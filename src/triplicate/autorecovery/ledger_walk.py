"""One walk over the metadata of all ledgers, several reads at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from triplicate.client import Client
from triplicate.errors import FormatError, NoSuchLedger
from triplicate.ledger import LedgerMetadata
from triplicate.runtime import map_bounded

READS_MAX = 32
"""Metadata reads in flight."""
CHUNK = 256
"""Ledgers whose metadata are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class WalkedLedger:
    """A ledger of the walk; `metadata` is None if it cannot be decoded."""

    ledger_id: int
    metadata: LedgerMetadata | None


async def walk_ledgers(client: Client, ledger_ids: AsyncIterator[int] | None = None) -> AsyncGenerator[WalkedLedger]:
    """All ledgers, by ascending id. Ledgers that are deleted during the walk are left out.

    Args:
        ledger_ids: only these, in their order.
    """

    async def read(ledger_id: int) -> WalkedLedger | None:
        try:
            return WalkedLedger(ledger_id, await client.metadata_of(ledger_id))
        except NoSuchLedger:
            return None
        except FormatError:
            return WalkedLedger(ledger_id, None)

    async for chunk in _chunks(client.ledger_ids() if ledger_ids is None else ledger_ids):
        for found in await map_bounded(read, chunk, most=READS_MAX, name="walk over ledgers"):
            if found is not None:
                yield found


async def _chunks(ids: AsyncIterator[int]) -> AsyncIterator[list[int]]:
    chunk: list[int] = []
    async for ledger_id in ids:
        chunk.append(ledger_id)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
