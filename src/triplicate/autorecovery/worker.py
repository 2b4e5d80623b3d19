"""The replication worker: locks an under-replicated ledger, has it repaired, and deletes the mark or releases the lock.

The mark is deleted only after every fragment has its copies, and stays if the ledger was marked again. The lock is ephemeral: if the
worker dies, another one can lock the ledger.

Source: BookKeeper `ReplicationWorker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.open_refill import OpenRefills
from triplicate.autorecovery.core.writer_presence import FirstViews
from triplicate.autorecovery.ledger_check import mark_recorded_damage
from triplicate.autorecovery.ledger_repair import RepairRun
from triplicate.autorecovery.recovery_metrics import RecoveryMetrics
from triplicate.autorecovery.repair_reports import reported
from triplicate.autorecovery.repair_tools import (
    CopiesMade,
    HasLivingWriter,
    RepairedLedgers,
    RepairOutcome,
    RepairResult,
    RepairTools,
    no_known_writers,
)
from triplicate.client import BookieCopies, Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import CorruptionError, FormatError, LedgerError, NoSuchLedger, PeerError
from triplicate.metadata import ReplicationLock, TrashedLedgerStore, UnderreplicatedLedger
from triplicate.runtime import fault_point, shielded


@dataclass(frozen=True, slots=True)
class LedgerRepair:
    """The result of one repair of a ledger.

    Args:
        entries, size_bytes: the entries copied, and their bytes with headers.
        fragments: number of fragments that have got their copies.
        reason: why something could not be repaired; empty if nothing is wrong.
        made: the copies that were stored and verified, in this order.
    """

    ledger_id: int
    outcome: RepairOutcome
    entries: int = 0
    size_bytes: int = 0
    fragments: int = 0
    reason: str = ""
    made: tuple[CopiesMade, ...] = ()


def unrepaired(repairs: Iterable[LedgerRepair]) -> tuple[LedgerRepair, ...]:
    """The repairs of ledgers that still lack copies."""
    done = (RepairOutcome.REPAIRED, RepairOutcome.NOT_MARKED)
    return tuple(repair for repair in repairs if repair.outcome not in done)


def _ignore(size_bytes: int) -> None:
    """No progress is wanted."""


class ReplicationWorker:
    """Repairs marked ledgers of one cluster. Several ledgers may be repaired at a time; they share one rate.

    Args:
        copies: the caller closes it after the worker.
        name: the name written into locks.
        leaving: bookies that are to be replaced although they are registered, in addition to those that are being decommissioned.
        busy_share: share of the time in which entries are copied.
        has_living_writer: an open ledger for which this is true is not fenced.
        copied: called with the bytes of entries that were copied.
        open_refills: of a refill, which also copies the entries of open ledgers back.
        moves_misplaced: whether every repair also moves copies that break the rules of placement. Otherwise only that of a mark without
            bookies does.
    """

    def __init__(
        self,
        client: Client,
        copies: BookieCopies,
        settings: AutorecoverySettings,
        *,
        name: str,
        leaving: frozenset[str] = frozenset(),
        busy_share: float = 1.0,
        has_living_writer: HasLivingWriter = no_known_writers,
        copied: Callable[[int], None] = _ignore,
        open_refills: OpenRefills | None = None,
        moves_misplaced: bool = False,
    ) -> None:
        self._client = client
        self._name = name
        self._marks = client.metadata.under_replication
        pace = CopyPace(client.host.clock, settings.bytes_per_s, busy_share)
        metrics = RecoveryMetrics(client.metrics)
        self._tools = RepairTools(
            client,
            copies,
            settings,
            pace,
            metrics,
            leaving,
            has_living_writer,
            FirstViews(settings.open_ledger_grace_s),
            copied,
            open_refills=open_refills,
            moves_misplaced=moves_misplaced,
        )

    def grace_ends_at(self, ledger_id: int) -> float:
        """When the grace period of an open ledger ends, in seconds of the monotonic clock; 0 if none runs."""
        seen_at = self._tools.views.seen_at(ledger_id)
        return 0.0 if seen_at is None else seen_at + self._tools.settings.open_ledger_grace_s

    async def repair(self, ledger_id: int) -> LedgerRepair:
        """Lock a marked ledger, repair it, and delete its mark, or release it.

        If the caller is cancelled, the lock is released; the metadata does not name copies that are not complete.

        Raises:
            MetadataError: the metadata store failed.
        """
        lock = await self._marks.lock(ledger_id, self._name)
        if lock is None:
            is_marked = await self._marks.get(ledger_id) is not None
            if not is_marked:
                self._tools.views.drop(ledger_id)
            return LedgerRepair(ledger_id, RepairOutcome.LOCKED if is_marked else RepairOutcome.NOT_MARKED)
        return await self.repair_locked(lock)

    async def repair_trashed(self, ledger_id: int, missing: tuple[str, ...]) -> LedgerRepair:
        """Give a closed ledger in the trash its copies on other bookies, under the lock of its id.

        Args:
            missing: the bookies that are to be replaced.

        Raises:
            MetadataError: the metadata store failed.
        """
        lock = await self._marks.lock(ledger_id, self._name) or await self._marks.lock_unmarked(ledger_id, self._name)
        if lock is None:
            return LedgerRepair(ledger_id, RepairOutcome.LOCKED)
        mark = UnderreplicatedLedger(ledger_id, missing, None, lock.mark.version)
        try:
            return await self._run(mark, TrashedLedgerStore(self._client.metadata.trash, self._client.metadata.ledgers))
        finally:
            await shielded(self._marks.release(lock))

    async def repair_locked(self, lock: ReplicationLock) -> LedgerRepair:
        """Repair a ledger that the caller has locked, and delete its mark, or release it. See `repair`."""
        is_held = True
        try:
            repair = await self._run(lock.mark, None)
            if repair.outcome is RepairOutcome.REPAIRED:
                # `complete` releases the lock as well, in any case. Another task of this session may lock the ledger next.
                is_held = False
                if not await shielded(self._complete(lock)):
                    repair = replace(repair, outcome=RepairOutcome.MARKED_AGAIN)
        finally:
            if is_held:
                await shielded(self._marks.release(lock))
        if repair.outcome in (RepairOutcome.REPAIRED, RepairOutcome.MARKED_AGAIN):
            self._tools.views.drop(lock.mark.ledger_id)
        if repair.fragments:
            self._tools.metrics.ledgers_replicated.inc()
        if repair.outcome is RepairOutcome.FAILED:
            self._tools.metrics.ledgers_failed.inc()
        self._client.host.trace(
            "autorecovery.ledger", ledger=repair.ledger_id, outcome=repair.outcome.value, bytes=repair.size_bytes, reason=repair.reason
        )
        return repair

    @fault_point("autorecovery.complete")
    async def _complete(self, lock: ReplicationLock) -> bool:
        """Delete the mark of a repaired ledger; False if it stays, or is made again because of damage that was recorded meanwhile."""
        return await self._marks.complete(lock) and not await mark_recorded_damage(self._client, lock.mark.ledger_id)

    async def _run(self, mark: UnderreplicatedLedger, ledgers: RepairedLedgers | None) -> LedgerRepair:
        run = RepairRun(self._tools, mark, ledgers)
        try:
            async with reported(self._client, mark.ledger_id, self._name, run.counts):
                result = await run.repair()
        except NoSuchLedger:
            # A deleted ledger needs no copies, and one that has left the trash is marked like any other.
            if ledgers is None:
                await self._forget_damage(mark.ledger_id)
            result = RepairResult(RepairOutcome.REPAIRED)
        except (LedgerError, PeerError, CorruptionError, FormatError) as error:
            result = RepairResult(RepairOutcome.FAILED, str(error))
        if run.moved:
            self._tools.metrics.ledgers_moved.inc()
        counts, made = run.counts, tuple(run.counts.made)
        return LedgerRepair(mark.ledger_id, result.outcome, counts.entries, counts.size_bytes, run.fragments, result.reason, made)

    async def _forget_damage(self, ledger_id: int) -> None:
        records = self._client.metadata.damaged_copies
        record = await records.get(ledger_id)
        if record is not None:
            await records.delete(record)
