"""The repair of one ledger on request: it is checked, marked and repaired as by any replication worker, and checked again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from triplicate.autorecovery.core.ledger_copies import LedgerCopies
from triplicate.autorecovery.ledger_check import mark_copies
from triplicate.autorecovery.recovery_pass import DEFAULT_SETTINGS, PassProgress, repair_marked
from triplicate.autorecovery.repair_tools import HasLivingWriter, RepairOutcome, no_known_writers
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.runtime import sleep

LOCKED_WAIT_S = 10.0
"""How long the repair waits for a worker that has locked the ledger, which may make the copies itself."""
LOCKED_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class MendedLedger:
    """The result of a repair on request.

    Args:
        marked: the bookies of the mark.
        repair: None if nothing was to be repaired.
        after: the copies as the second check found them; those of the first check without a repair.
    """

    before: LedgerCopies
    marked: tuple[str, ...]
    repair: LedgerRepair | None
    after: LedgerCopies


async def mend_ledger(
    client: Client,
    check: Callable[[], Awaitable[LedgerCopies]],
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    has_living_writer: HasLivingWriter = no_known_writers,
    progress: PassProgress | None = None,
) -> MendedLedger:
    """Repair the copies that a check finds to be missing or damaged, and those of a mark that is there already.

    Copies that cannot be made stay marked, with a note of the reason. The repair does not regard whether auto-recovery is disabled.

    Args:
        check: checks every copy of the ledger.
        has_living_writer: an open ledger for which this is true is not fenced.

    Raises:
        MetadataError: the metadata store failed. Whatever `check` raises.
    """
    progress = progress or PassProgress()
    before = await check()
    marks, ledger_id = client.metadata.under_replication, before.ledger_id
    marked = await mark_copies(client, before)
    if await marks.get(ledger_id) is None and not marked:
        return MendedLedger(before, (), None, before)
    progress.ledgers_total = 1
    async with client.bookie_copies() as copies:
        name = client.host.name
        worker = ReplicationWorker(client, copies, settings, name=name, has_living_writer=has_living_writer, copied=progress.copied)
        repair = await _repair(client, worker, ledger_id)
    progress.repaired()
    if repair.outcome in (RepairOutcome.REPAIRED, RepairOutcome.NOT_MARKED):
        await client.metadata.repair_notes.clear(ledger_id)
    elif repair.reason:
        await client.metadata.repair_notes.record(ledger_id, f"{repair.outcome.value}: {repair.reason}", name)
    return MendedLedger(before, marked, repair, await check())


async def _repair(client: Client, worker: ReplicationWorker, ledger_id: int) -> LedgerRepair:
    clock = client.host.clock
    ends_at = clock.monotonic() + LOCKED_WAIT_S
    while True:
        (repair,) = await repair_marked(client, worker, [ledger_id], 1, PassProgress())
        if repair.outcome is not RepairOutcome.LOCKED or clock.monotonic() >= ends_at:
            return repair
        await sleep(clock, LOCKED_PAUSE_S)
