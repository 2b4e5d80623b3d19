"""Refill of a bookie whose disks were replaced: the entries that ledgers promise on it are copied back, and its limbo ends.

Every ledger that may have lost entries or a fence on the bookie is marked as under-replicated and repaired by a replication worker,
which reads the entries, copies those that are missing, and fences the bookie. An open ledger whose last segment names the bookie is
repaired after its writer is gone. If the writer lives, its entries are copied up to a bound that covers all that the old disks may have had
(`core/open_refill.py`); the writer goes on. Only when all ledgers are complete, the bookie counts as visited. An interrupted refill can be
started again; it copies what is still missing.

The refill waits for ledgers that other workers have locked, and for living writers to store the entries that give the bound.

Source: BookKeeper's BP-46 (data integrity check).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from triplicate.autorecovery.core.open_refill import OpenRefills
from triplicate.autorecovery.recovery_pass import DEFAULT_SETTINGS, PassProgress, joined_repairs
from triplicate.autorecovery.repair_tools import HasLivingWriter, RepairOutcome, no_known_writers
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import ArgumentError, FormatError, NoSuchLedger
from triplicate.metadata import ClusterMetadata, Incarnation, may_have_lost_entries
from triplicate.runtime import map_bounded, sleep, sleep_until

AGAIN = (
    RepairOutcome.GRACE_PERIOD,
    RepairOutcome.MARKED_AGAIN,
    RepairOutcome.LOCKED,
    RepairOutcome.NOT_MARKED,
    RepairOutcome.HAS_WRITER,
)
"""Outcomes after which a ledger is repaired again in the same refill."""
COMPLETE = (RepairOutcome.REPAIRED, RepairOutcome.REFILLED)
"""Outcomes after which the bookie has every entry of the ledger that it may have lost."""
AGAIN_S = 1.0
"""Pause between two rounds."""

SHOWN = 3
"""Ledgers that the progress names for each reason to wait."""

OpenRefillsKept = dict[str, OpenRefills]
"""The knowledge of refills about open ledgers, by bookie. Valid while the bookie keeps its present disks."""


@dataclass(frozen=True, slots=True)
class RefillReport:
    """The result of a refill.

    Args:
        bookie_id: the bookie.
        was_in_limbo: whether its disks were replaced and not refilled before. Otherwise nothing was done.
        complete: whether all ledgers have their entries on it, so that its limbo has ended.
        repairs: the last repair of each ledger, ascending.
        blocked: why ledgers that cannot be repaired keep the bookie in limbo, by ledger id.
    """

    bookie_id: str
    was_in_limbo: bool
    complete: bool
    repairs: tuple[LedgerRepair, ...] = ()
    blocked: tuple[tuple[int, str], ...] = ()

    @property
    def unrepaired(self) -> tuple[LedgerRepair, ...]:
        """The ledgers that still lack entries."""
        return not_repaired(self.repairs)


async def refill_bookie(
    client: Client,
    bookie_id: str,
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    has_living_writer: HasLivingWriter = no_known_writers,
    progress: PassProgress | None = None,
    known: OpenRefillsKept | None = None,
) -> RefillReport:
    """Copy the lost entries of a bookie in limbo back to it, and end its limbo when all are there.

    Args:
        has_living_writer: as for `recover_bookies`.
        known: what earlier refills in this process found out about open ledgers; the present one adds to it. A writer that stores few
            entries needs several refills.

    Raises:
        ArgumentError: the bookie is in limbo and not registered as writable. MetadataError: the metadata store failed; try again.
    """
    progress = progress if progress is not None else PassProgress()
    metadata = client.metadata
    incarnation = await metadata.incarnations.get(bookie_id)
    if incarnation.visited:
        return RefillReport(bookie_id, was_in_limbo=False, complete=True)
    if bookie_id not in await metadata.bookies.writable():
        raise ArgumentError(f"bookie {bookie_id} is not registered as writable, so it accepts no copies; start it first")
    # A metadata server that is behind may not list all ledgers from before the replacement.
    await metadata.ledgers.refresh()
    ledger_ids, blocked = await _survey(metadata, bookie_id, incarnation)
    progress.ledgers_total = len(ledger_ids)
    open_refills = _open_refills(known if known is not None else {}, bookie_id, incarnation)
    open_refills.keep_only(ledger_ids)
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(
            client,
            copies,
            settings,
            name=client.host.name,
            has_living_writer=has_living_writer,
            copied=progress.copied,
            open_refills=open_refills,
        )
        repairs = await _Rounds(client, worker, settings, open_refills, progress).run(ledger_ids)
    complete = not not_repaired(repairs) and not blocked
    if complete and not await metadata.incarnations.mark_visited(bookie_id, number=incarnation.number):
        # Another refill, such as the auditor's, has ended the limbo, or the disks were replaced once more.
        found = await metadata.incarnations.get(bookie_id)
        complete = found.visited and found.number == incarnation.number
    if complete and known is not None:
        known.pop(bookie_id, None)
    return RefillReport(bookie_id, was_in_limbo=True, complete=complete, repairs=repairs, blocked=tuple(blocked))


def not_repaired(repairs: Iterable[LedgerRepair]) -> tuple[LedgerRepair, ...]:
    """The ledgers that this refill has not completed itself. Another worker's verdict does not count, since it may know no limbo."""
    return tuple(repair for repair in repairs if repair.outcome not in COMPLETE)


def _open_refills(known: OpenRefillsKept, bookie_id: str, incarnation: Incarnation) -> OpenRefills:
    found = known.get(bookie_id)
    if found is None or found.incarnation != incarnation.number:
        found = known[bookie_id] = OpenRefills(bookie_id, incarnation.number)
    return found


class _Rounds:
    """The repairs of one refill. Ledgers that must wait are repaired again in the next round."""

    def __init__(
        self, client: Client, worker: ReplicationWorker, settings: AutorecoverySettings, open_refills: OpenRefills, progress: PassProgress
    ) -> None:
        self._client = client
        self._clock = client.host.clock
        self._worker = worker
        self._settings = settings
        self._open = open_refills
        self._progress = progress
        self._last: dict[int, LedgerRepair] = {}

    async def run(self, ledger_ids: list[int]) -> tuple[LedgerRepair, ...]:
        """Mark and repair each ledger, again and again until none must wait, or none has become complete for `refill_wait_s`.

        Returns:
            The last repair of each.
        """
        waiting = ledger_ids
        ends_at = self._clock.monotonic() + self._settings.refill_wait_s
        while waiting:
            at_once = self._settings.ledgers_at_once
            for repaired in await map_bounded(self._repair, waiting, most=at_once, name="refills of ledgers"):
                self._last[repaired.ledger_id] = repaired
                if repaired.outcome not in AGAIN:
                    self._progress.repaired()
            left = [ledger_id for ledger_id in waiting if self._last[ledger_id].outcome in AGAIN]
            now = self._clock.monotonic()
            if len(left) < len(waiting):
                ends_at = now + self._settings.refill_wait_s
            waiting = left
            if not waiting or now >= ends_at:
                break
            self._progress.waiting(waits_for(self._last[ledger_id] for ledger_id in waiting))
            await sleep(self._clock, AGAIN_S)
        self._progress.waiting("")
        return tuple(self._described(repair) for repair in self._last.values())

    async def _repair(self, ledger_id: int) -> LedgerRepair:
        await sleep_until(self._clock, self._worker.grace_ends_at(ledger_id))
        # The mark is made now, and not for all ledgers before, so that few other workers see it first.
        await self._client.metadata.under_replication.mark(ledger_id, [self._open.bookie_id])
        return joined_repairs(self._last.get(ledger_id), await self._worker.repair(ledger_id))

    def _described(self, repair: LedgerRepair) -> LedgerRepair:
        """The repair with the reason why the ledger is not complete, and what to do."""
        wait = f"for {self._settings.refill_wait_s:g} s without progress; the next refill goes on"
        if repair.outcome in (RepairOutcome.LOCKED, RepairOutcome.NOT_MARKED, RepairOutcome.MARKED_AGAIN):
            return replace(repair, reason=f"another worker repairs it, {wait}")
        needed = self._open.needed_by(repair.ledger_id)
        if repair.outcome is RepairOutcome.HAS_WRITER and needed:
            remedy = "" if self._open.silent_for(repair.ledger_id) else ". Append to the log, or restart its writer"
            return replace(repair, reason=f"{repair.reason}; the refill waited for {needed}, {wait}{remedy}")
        if repair.outcome is RepairOutcome.HAS_WRITER:
            return replace(
                repair,
                reason=f"{repair.reason}; it belongs to no log, so nobody knows in which order it is written: close it, or end its writer",
            )
        return repair


def waits_for(repairs: Iterable[LedgerRepair]) -> str:
    """The reasons for which a refill waits, in words, each with its ledgers."""
    by_reason: dict[str, list[int]] = {}
    for repair in repairs:
        if repair.outcome is RepairOutcome.HAS_WRITER:
            reason = "entries of the writers"
        elif repair.outcome is RepairOutcome.GRACE_PERIOD:
            reason = "the grace period"
        else:
            reason = "the other workers"
        by_reason.setdefault(reason, []).append(repair.ledger_id)
    return "; ".join(
        f"{reason} of {len(ledger_ids)} ledgers ({', '.join(map(str, ledger_ids[:SHOWN]))}{', ...' if len(ledger_ids) > SHOWN else ''})"
        for reason, ledger_ids in by_reason.items()
    )


async def refill_bookies_in_limbo(
    client: Client,
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    has_living_writer: HasLivingWriter = no_known_writers,
    known: OpenRefillsKept | None = None,
) -> tuple[RefillReport, ...]:
    """Refill every bookie that is in limbo and registered as writable, one after another. See `refill_bookie`. Raises MetadataError."""
    reports: list[RefillReport] = []
    for bookie_id in await client.metadata.bookies.writable():
        try:
            incarnation = await client.metadata.incarnations.get(bookie_id)
            if not incarnation.visited:
                refill = refill_bookie(client, bookie_id, settings=settings, has_living_writer=has_living_writer, known=known)
                reports.append(await refill)
        except (ArgumentError, FormatError) as error:
            # The bookie has stopped meanwhile, or a newer release has recorded its incarnation.
            client.host.trace("autorecovery.refill_refused", bookie=bookie_id, error=str(error))
    return tuple(reports)


async def _survey(metadata: ClusterMetadata, bookie_id: str, incarnation: Incarnation) -> tuple[list[int], list[tuple[int, str]]]:
    """The ledgers that may have lost entries on the bookie, ascending, and those that cannot be refilled, with the reason."""
    ledger_ids: list[int] = []
    blocked: list[tuple[int, str]] = []
    async for ledger_id in metadata.ledgers.ids():
        try:
            found = await metadata.ledgers.get(ledger_id)
        except NoSuchLedger:
            continue
        except FormatError as error:
            blocked.append((ledger_id, str(error)))
            continue
        if await may_have_lost_entries(metadata, bookie_id, incarnation, ledger_id, found):
            ledger_ids.append(ledger_id)
    for ledger_id in await metadata.trash.ledger_ids():
        try:
            trashed = await metadata.trash.get(ledger_id)
        except FormatError as error:
            blocked.append((ledger_id, str(error)))
            continue
        # A recovery of such a ledger after its undelete must not hear that lost entries were never written.
        if trashed is not None and await may_have_lost_entries(metadata, bookie_id, incarnation, ledger_id, trashed):
            blocked.append((ledger_id, "it is in the trash and may be undeleted; repeat this after the end of its period there"))
    return sorted(ledger_ids), blocked
