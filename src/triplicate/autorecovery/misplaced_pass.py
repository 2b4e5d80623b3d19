"""One pass by hand that moves the copies of ledgers which break the rules of placement.

The ledgers are marked as under-replicated without a bookie, as BookKeeper's auditor marks them, and repaired at once. A ledger that is not
mended stays marked. A pass that is interrupted can be started again. It does not regard whether auto-recovery is disabled.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from triplicate.autorecovery.core.misplaced_copies import MisplacedCopies
from triplicate.autorecovery.ledger_walk import walk_ledgers
from triplicate.autorecovery.move_planner import MISPLACED, MovePlanner
from triplicate.autorecovery.recovery_pass import DEFAULT_SETTINGS, ROUNDS_MAX, PassProgress, joined_repairs
from triplicate.autorecovery.repair_tools import RepairOutcome
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker, unrepaired
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import ArgumentError, NoSuchLedger
from triplicate.ledger import LedgerMetadata
from triplicate.runtime import map_bounded, sleep

AGAIN = (RepairOutcome.MARKED_AGAIN, RepairOutcome.LOCKED, RepairOutcome.NOT_MARKED)
"""Outcomes after which a ledger is planned again: another worker has it, or had it and may have moved nothing."""
AGAIN_S = 1.0
"""Pause between two rounds."""


@dataclass(frozen=True, slots=True)
class MisplacedLedger:
    """A ledger whose ensembles are not as the rules ask.

    Args:
        reasons: why, each with the first entry of the segment.
        fragments, entries: the copies that move.
        size_bytes: estimate of their payload bytes, from the ledger's length; 0 for an open ledger.
        targets: the bookies that get them.
        refused: why segments that break a rule cannot be mended.
        open_segment: why the last segment of an open ledger breaks a rule. It is left to its writer.
    """

    ledger_id: int
    reasons: tuple[str, ...]
    fragments: int
    entries: int
    size_bytes: int
    targets: tuple[str, ...]
    refused: tuple[str, ...] = ()
    open_segment: str = ""


@dataclass(frozen=True, slots=True)
class MisplacedReport:
    """The result of a pass.

    Args:
        ledgers: number of ledgers that were examined.
        misplaced: those with moves, refusals or an open segment that breaks a rule, ascending.
        unreadable: ledgers whose metadata cannot be decoded.
        repairs: the last repair of each ledger with moves, ascending; empty for a dry run.
    """

    ledgers: int
    misplaced: tuple[MisplacedLedger, ...]
    unreadable: tuple[int, ...] = ()
    repairs: tuple[LedgerRepair, ...] = ()

    @property
    def unrepaired(self) -> tuple[LedgerRepair, ...]:
        """The ledgers whose copies could not all be moved."""
        return unrepaired(self.repairs)

    @property
    def refused(self) -> tuple[MisplacedLedger, ...]:
        """The ledgers with a segment that breaks a rule and cannot be mended."""
        return tuple(one for one in self.misplaced if one.refused)


async def move_misplaced(
    client: Client,
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    dry_run: bool = False,
    progress: PassProgress | None = None,
) -> MisplacedReport:
    """Move the copies of all ledgers that break the rules of placement of this client, as far as the bookies allow.

    Raises:
        ArgumentError: no bookie is registered. MetadataError: the metadata store failed. The pass can be started again.
    """
    progress = progress if progress is not None else PassProgress()
    planner = MovePlanner(client)
    registered = await planner.registered()
    if not registered:
        raise ArgumentError("no bookie is registered, so none can get copies; start bookies first, or check the address of the cluster")
    targets = await planner.targets()
    ledgers, unreadable = 0, []
    misplaced: list[MisplacedLedger] = []
    async with aclosing(walk_ledgers(client)) as walk:
        async for ledger in walk:
            ledgers += 1
            if ledger.metadata is None:
                unreadable.append(ledger.ledger_id)
                continue
            _, plan = await planner.plan(ledger.metadata, targets, registered)
            if plan.moves or plan.refused or plan.open_segment:
                misplaced.append(_described(ledger.ledger_id, ledger.metadata, plan))
    if dry_run:
        return MisplacedReport(ledgers, tuple(misplaced), tuple(unreadable))
    movable = [one for one in misplaced if one.fragments]
    progress.ledgers_total = len(movable)
    progress.bytes_expected = sum(one.size_bytes for one in movable)
    repairs = await _move(client, planner, movable, settings, progress)
    return MisplacedReport(ledgers, tuple(misplaced), tuple(unreadable), repairs)


def _described(ledger_id: int, metadata: LedgerMetadata, plan: MisplacedCopies) -> MisplacedLedger:
    size_bytes = metadata.length * plan.entries // (metadata.last_entry_id + 1) if metadata.last_entry_id >= 0 else 0
    targets = tuple(sorted({move.target for move in plan.moves}))
    return MisplacedLedger(ledger_id, plan.reasons, len(plan.moves), plan.entries, size_bytes, targets, plan.refused, plan.open_segment)


async def _move(
    client: Client, planner: MovePlanner, movable: list[MisplacedLedger], settings: AutorecoverySettings, progress: PassProgress
) -> tuple[LedgerRepair, ...]:
    """Mark and repair each ledger; returns the last repair of each."""
    marks, notes = client.metadata.under_replication, client.metadata.repair_notes
    name = client.host.name
    last: dict[int, LedgerRepair] = {}
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(client, copies, settings, name=name, copied=progress.copied, moves_misplaced=True)

        async def repair(one: MisplacedLedger) -> LedgerRepair:
            if one.ledger_id in last and not await _has_moves(client, planner, one.ledger_id):
                return LedgerRepair(one.ledger_id, RepairOutcome.REPAIRED)
            # The mark is made now, and not for all ledgers before, so that few other workers see it first.
            if await marks.get(one.ledger_id) is None:
                await notes.record(one.ledger_id, f"{MISPLACED}: {'; '.join(one.reasons)}", name)
            await marks.mark(one.ledger_id, ())
            repaired = await worker.repair(one.ledger_id)
            if repaired.outcome is RepairOutcome.REPAIRED:
                await notes.clear(one.ledger_id)
            elif repaired.outcome not in AGAIN:
                await notes.record(one.ledger_id, f"{repaired.outcome.value}: {repaired.reason}", name)
            return repaired

        waiting = movable
        for _ in range(ROUNDS_MAX):
            for repaired in await map_bounded(repair, waiting, most=settings.ledgers_at_once, name="moves of ledgers"):
                last[repaired.ledger_id] = joined_repairs(last.get(repaired.ledger_id), repaired)
                if repaired.outcome not in AGAIN:
                    progress.repaired()
            waiting = [one for one in waiting if last[one.ledger_id].outcome in AGAIN]
            if not waiting:
                break
            await sleep(client.host.clock, AGAIN_S)
    return tuple(last[ledger_id] for ledger_id in sorted(last))


async def _has_moves(client: Client, planner: MovePlanner, ledger_id: int) -> bool:
    try:
        found = await client.metadata.ledgers.get(ledger_id)
    except NoSuchLedger:
        return False
    _, plan = await planner.plan(found.value, await planner.targets(), await planner.registered())
    return bool(plan.moves)
