"""The loop of a process that repairs marked ledgers, in random order, several at a time.

Any number of processes run such loops. A ledger that cannot be repaired is left alone for a time that grows with each failure, and the
reason is noted in the metadata. Source: BookKeeper `ReplicationWorker`.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from triplicate.autorecovery.auditor_metrics import AuditorMetrics
from triplicate.autorecovery.core.repair_delays import RepairDelays
from triplicate.autorecovery.repair_tools import RepairOutcome
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import TriplicateError
from triplicate.metadata import ReplicationLock
from triplicate.runtime import TaskScope, shielded, sleep

ERROR_PAUSE_S = 1.0
"""Least pause of a place after an error, so that a failing metadata store is not flooded with requests."""

DONE = (RepairOutcome.REPAIRED, RepairOutcome.NOT_MARKED, RepairOutcome.MARKED_AGAIN, RepairOutcome.LOCKED)
"""Outcomes after which the ledger is repaired at once if it is marked."""


class ReplicationLoop:
    """The loop of one process.

    Args:
        name: the name written into locks and notes.
    """

    def __init__(
        self, client: Client, worker: ReplicationWorker, settings: AutorecoverySettings, metrics: AuditorMetrics, name: str
    ) -> None:
        self._marks = client.metadata.under_replication
        self._notes = client.metadata.repair_notes
        self._host = client.host
        self._clock = client.host.clock
        self._worker = worker
        self._name = name
        self._failures = metrics.failures.labels("repair")
        self._delays = RepairDelays(client.host.entropy.stream("autorecovery.delays").random)
        self._at_once = settings.ledgers_at_once
        self._unstarted: dict[int, ReplicationLock] = {}
        """Locks whose repair has not begun. A task that is cancelled before its first step never runs."""

    async def run(self) -> NoReturn:
        """Repair until cancelled. Repairs that run are then cancelled, and their locks are released.

        Raises:
            MetadataError: the metadata store failed. The loop can be begun again.
        """
        places = asyncio.Semaphore(self._at_once)
        try:
            async with TaskScope("repairs of ledgers") as scope:
                while True:
                    await places.acquire()
                    lock = await self._marks.lock_next(self._name, self._is_held, self._held_until)
                    self._unstarted[lock.mark.ledger_id] = lock
                    scope.spawn(self._repair(lock, places), name="repair")
        finally:
            while self._unstarted:
                _, lock = self._unstarted.popitem()
                await shielded(self._marks.release(lock))

    def _is_held(self, ledger_id: int) -> bool:
        return self._delays.is_held(ledger_id, self._clock.monotonic())

    def _held_until(self) -> float | None:
        return self._delays.next_end(self._clock.monotonic())

    async def _repair(self, lock: ReplicationLock, places: asyncio.Semaphore) -> None:
        ledger_id = lock.mark.ledger_id
        del self._unstarted[ledger_id]
        try:
            repair = await self._worker.repair_locked(lock)
            await self._record(repair)
        except TriplicateError as error:
            self._failures.inc()
            self._delays.failed(ledger_id, self._clock.monotonic())
            self._host.trace("autorecovery.repair_failed", ledger=ledger_id, error=repr(error))
            await sleep(self._clock, ERROR_PAUSE_S)
        finally:
            places.release()

    async def _record(self, repair: LedgerRepair) -> None:
        """Note the end of a repair, for the next one and for operators."""
        if repair.outcome in DONE:
            self._delays.clear(repair.ledger_id)
            await self._notes.clear(repair.ledger_id)
            return
        now = self._clock.monotonic()
        if repair.outcome is RepairOutcome.GRACE_PERIOD:
            self._delays.wait_until(repair.ledger_id, max(now + ERROR_PAUSE_S, self._worker.grace_ends_at(repair.ledger_id)))
            return
        self._delays.failed(repair.ledger_id, now)
        await self._notes.record(repair.ledger_id, f"{repair.outcome.value}: {repair.reason}", self._name)
