"""Deletes a bookie's copies that no ledger needs any more.

A bookie that was lost for a while comes back with copies that were made again elsewhere, and a ledger that was moved leaves copies
behind. Garbage collection keeps them, since their ledgers exist. A copy is deleted only if

- the ledger is closed, and no segment of its metadata names the bookie, in two rounds and once more behind a `sync`;
- nothing of it was stored between these rounds, so that no repair by a tool without locks is under way;
- the ledger is locked against replication workers meanwhile, and not marked;
- each entry that the bookie lists is listed by all bookies that the metadata name for it. BookKeeper does not ask them.

The state of the ledger stays, with its fence and master key: a worker may choose the bookie again, and its recovery adds must be accepted.

Source: BookKeeper `ScanAndCompareGarbageCollector.removeOverReplicatedledgers`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from triplicate.autorecovery.copy_lists import lacking_by_lists, listed
from triplicate.autorecovery.core.needed_copies import names_any
from triplicate.autorecovery.ledger_walk import walk_ledgers
from triplicate.autorecovery.recovery_metrics import RecoveryMetrics
from triplicate.client import BookieCopies, Client
from triplicate.errors import BookieError, FormatError, MetadataError, NoSuchLedger
from triplicate.ledger import LedgerMetadata
from triplicate.runtime import Host, fault_point, sleep


class LocalCopies(Protocol):
    """The storage of the bookie of this process."""

    async def ledger_ids(self) -> list[int]:
        """Every ledger that the bookie knows, ascending."""

    async def extent(self, ledger_id: int) -> tuple[int, int] | None:
        """Number of a ledger's runs, and the newest flush among them, which change with each entry; None while something of it waits for a
        flush.
        """

    async def delete_copies(self, ledger_id: int, up_to_flush: int) -> None:
        """Delete the entries of a ledger that are in its `extent`, and keep its state. Raises OSError, CorruptionError."""


@dataclass(frozen=True, slots=True)
class UnneededReport:
    """One round.

    Attributes:
        held: ledgers of the bookie.
        unneeded: those that are closed and name other bookies only.
        deleted: those of them whose copies were deleted.
        kept: those whose copies another bookie lacks, or could not list.
    """

    held: int
    unneeded: int
    deleted: tuple[int, ...]
    kept: tuple[int, ...]


class UnneededCopies:
    """See the module's text.

    Args:
        wait_s: time between two rounds, in seconds. A copy is deleted after one to two such times.
    """

    def __init__(self, client: Client, bookie_id: str, local: LocalCopies, wait_s: float) -> None:
        self._client = client
        self._host: Host = client.host
        self._bookie_id = bookie_id
        self._local = local
        self._wait_s = wait_s
        self._metrics = RecoveryMetrics(client.metrics)
        self._seen: dict[int, tuple[int, int]] = {}
        """The extent of each unneeded ledger in the last round."""

    async def run(self) -> None:
        """Rounds without end. Raises OSError, CorruptionError: of the storage."""
        while True:
            try:
                if await self._client.metadata.under_replication.is_enabled():
                    await self.run_round()
            except (MetadataError, BookieError) as error:
                self._host.trace("autorecovery.unneeded_copies_put_off", bookie=self._bookie_id, error=" ".join(str(error).split()))
            await sleep(self._host.clock, self._wait_s)

    async def run_round(self) -> UnneededReport:
        """Look at every ledger of the bookie; delete those that were unneeded in the last round, too, and have not changed.

        Raises:
            MetadataError: the metadata did not answer; the next round goes on. OSError, CorruptionError: of the storage.
        """
        held = await self._local.ledger_ids()
        unneeded: dict[int, tuple[int, int]] = {}
        deleted: list[int] = []
        kept: list[int] = []
        async with self._client.bookie_copies() as copies, aclosing(walk_ledgers(self._client, _iterated(held))) as walk:
            async for ledger in walk:
                if ledger.metadata is None or not self._is_unneeded(ledger.metadata):
                    continue
                extent = await self._local.extent(ledger.ledger_id)
                if extent is None or extent[0] == 0:
                    continue  # An entry waits for a flush, or only the fence is left.
                if self._seen.get(ledger.ledger_id) != extent:
                    unneeded[ledger.ledger_id] = extent
                elif await self._delete(copies, ledger.ledger_id, extent):
                    deleted.append(ledger.ledger_id)
                    self._metrics.unneeded_copies_deleted.inc()
                else:
                    unneeded[ledger.ledger_id] = extent
                    kept.append(ledger.ledger_id)
        self._seen = unneeded
        report = UnneededReport(len(held), len(unneeded) + len(deleted), tuple(deleted), tuple(kept))
        if deleted:
            self._host.trace("autorecovery.unneeded_copies_deleted", bookie=self._bookie_id, ledgers=len(deleted), first=deleted[0])
        return report

    def _is_unneeded(self, metadata: LedgerMetadata) -> bool:
        return metadata.is_closed and not names_any(metadata, (self._bookie_id,))

    async def _delete(self, copies: BookieCopies, ledger_id: int, extent: tuple[int, int]) -> bool:
        marks = self._client.metadata.under_replication
        lock = await marks.lock_unmarked(ledger_id, self._bookie_id)
        if lock is None:
            return False
        try:
            return await self._delete_locked(copies, ledger_id, extent)
        finally:
            await marks.release(lock)

    async def _delete_locked(self, copies: BookieCopies, ledger_id: int, extent: tuple[int, int]) -> bool:
        stored = await listed(copies, ledger_id, self._bookie_id)
        metadata = await self._fresh_metadata(ledger_id)
        if stored.silence or metadata is None or not self._is_unneeded(metadata):
            return False
        if await lacking_by_lists(copies, ledger_id, metadata, stored.stored):
            return False
        # The lists took time. Behind this reading nothing waits but the question whether anything was stored meanwhile.
        latest = await self._fresh_metadata(ledger_id)
        if latest is None or latest != metadata or await self._local.extent(ledger_id) != extent:
            return False
        await self._remove(ledger_id, extent[1])
        return True

    @fault_point("autorecovery.unneeded_copy_is_deleted")
    async def _remove(self, ledger_id: int, up_to_flush: int) -> None:
        await self._local.delete_copies(ledger_id, up_to_flush)

    async def _fresh_metadata(self, ledger_id: int) -> LedgerMetadata | None:
        await self._client.metadata.ledgers.refresh()
        try:
            return await self._client.metadata_of(ledger_id)
        except (NoSuchLedger, FormatError):
            return None  # Garbage collection looks after deleted ledgers.


async def _iterated(ledger_ids: list[int]) -> AsyncIterator[int]:
    for ledger_id in ledger_ids:
        yield ledger_id
