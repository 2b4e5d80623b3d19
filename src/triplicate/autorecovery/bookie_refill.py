"""Refill of a bookie whose disks were replaced: the entries that ledgers promise on it are copied back, and its limbo ends.

Every ledger that may have lost entries or a fence on the bookie is marked as under-replicated and repaired by a replication worker,
which reads the entries, copies those that are missing, and fences the bookie. An open ledger whose last segment names the bookie is
repaired after its writer is gone, or has replaced the bookie. Only when all of them are complete, the bookie counts as visited. An
interrupted refill can be started again; it copies what is still missing.

Source: BookKeeper's BP-46 (data integrity check).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplicate.autorecovery.ledger_repair import HasLivingWriter, RepairOutcome, no_known_writers
from triplicate.autorecovery.recovery_pass import DEFAULT_SETTINGS, ROUNDS_MAX, PassProgress, joined_repairs
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import ArgumentError, FormatError, NoSuchLedger
from triplicate.metadata import ClusterMetadata, Incarnation, may_have_lost_entries
from triplicate.runtime import map_bounded, sleep, sleep_until

AGAIN = (RepairOutcome.GRACE_PERIOD, RepairOutcome.MARKED_AGAIN, RepairOutcome.LOCKED, RepairOutcome.NOT_MARKED)
"""Outcomes after which a ledger is repaired again in the same refill."""
AGAIN_S = 1.0
"""Pause between two rounds."""


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
) -> RefillReport:
    """Copy the lost entries of a bookie in limbo back to it, and end its limbo when all are there.

    Args:
        has_living_writer: as for `recover_bookies`.

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
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(
            client, copies, settings, name=client.host.name, has_living_writer=has_living_writer, copied=progress.copied
        )
        repairs = await _repair(client, worker, bookie_id, ledger_ids, settings.ledgers_at_once, progress)
    complete = not not_repaired(repairs) and not blocked
    if complete:
        complete = await metadata.incarnations.mark_visited(bookie_id, number=incarnation.number)
    return RefillReport(bookie_id, was_in_limbo=True, complete=complete, repairs=repairs, blocked=tuple(blocked))


def not_repaired(repairs: Iterable[LedgerRepair]) -> tuple[LedgerRepair, ...]:
    """The ledgers that this refill has not completed itself. Another worker's verdict does not count, since it may know no limbo."""
    return tuple(repair for repair in repairs if repair.outcome is not RepairOutcome.REPAIRED)


async def _repair(
    client: Client, worker: ReplicationWorker, bookie_id: str, ledger_ids: list[int], at_once: int, progress: PassProgress
) -> tuple[LedgerRepair, ...]:
    """Mark and repair each ledger; returns the last repair of each. Those that other workers have locked are repaired after them."""
    last: dict[int, LedgerRepair] = {}

    async def repair(ledger_id: int) -> LedgerRepair:
        await sleep_until(client.host.clock, worker.grace_ends_at(ledger_id))
        # The mark is made now, and not for all ledgers before, so that few other workers see it first.
        await client.metadata.under_replication.mark(ledger_id, [bookie_id])
        return joined_repairs(last.get(ledger_id), await worker.repair(ledger_id))

    waiting = ledger_ids
    for _ in range(ROUNDS_MAX):
        for repaired in await map_bounded(repair, waiting, most=at_once, name="refills of ledgers"):
            last[repaired.ledger_id] = repaired
            if repaired.outcome not in AGAIN:
                progress.repaired()
        waiting = [ledger_id for ledger_id in waiting if last[ledger_id].outcome in AGAIN]
        if not waiting:
            break
        await sleep(client.host.clock, AGAIN_S)
    return tuple(last.values())


async def refill_bookies_in_limbo(
    client: Client, *, settings: AutorecoverySettings = DEFAULT_SETTINGS, has_living_writer: HasLivingWriter = no_known_writers
) -> tuple[RefillReport, ...]:
    """Refill every bookie that is in limbo and registered as writable, one after another. Raises MetadataError."""
    reports: list[RefillReport] = []
    for bookie_id in await client.metadata.bookies.writable():
        try:
            incarnation = await client.metadata.incarnations.get(bookie_id)
            if not incarnation.visited:
                reports.append(await refill_bookie(client, bookie_id, settings=settings, has_living_writer=has_living_writer))
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
