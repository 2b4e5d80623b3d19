"""The daemon of auto-recovery: a candidate for the auditor, and a loop of repairs, in one process.

It runs in a process of its own or in that of a bookie. Its failures are traced and its tasks begin again, so that they never end a bookie.

Source: BookKeeper `AutoRecoveryMain`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from triplicate.autorecovery.auditor import Auditor, PeriodicWork
from triplicate.autorecovery.auditor_metrics import AuditorMetrics
from triplicate.autorecovery.bookie_refill import OpenRefillsKept, refill_bookies_in_limbo
from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.ledger_audits import LedgerAudits
from triplicate.autorecovery.repair_tools import HasLivingWriter, no_known_writers
from triplicate.autorecovery.replication_loop import ReplicationLoop
from triplicate.autorecovery.worker import ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.runtime import Backoff, TaskScope, first_of, resolve, sleep

RETRY_FIRST_S = 1.0
RETRY_LONGEST_S = 60.0
REFILL_FIRST_S = 60.0
"""Time between two searches for bookies in limbo."""
REFILL_AGAIN_S = 600.0
"""The same after a refill that was not complete, for instance because the writer of a ledger lives."""


class AutorecoveryDaemon:
    """The daemon of one process. It runs from its construction, on the present loop, until `stop`.

    Args:
        client: the caller closes it after the daemon.
        name: the name in votes and locks; a bookie id.
        has_living_writer: an open ledger for which this is true is not fenced.
        chore: other periodic work of the auditor.
    """

    def __init__(
        self,
        client: Client,
        settings: AutorecoverySettings,
        *,
        name: str,
        has_living_writer: HasLivingWriter = no_known_writers,
        chore: PeriodicWork | None = None,
    ) -> None:
        self._client = client
        self._host = client.host
        self._settings = settings
        self._name = name
        self._has_living_writer = has_living_writer
        self._chore = chore
        self._metrics = AuditorMetrics(client.metrics)
        self._failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._scope = TaskScope("auto-recovery", on_failure=self._failed)
        self._scope.spawn(self._repeat("auditor", self._stand), name="auditor")
        self._scope.spawn(self._repeat("worker", self._work), name="worker")

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the daemon, if any."""
        return self._scope.failure

    async def wait_failed(self) -> BaseException:
        """Wait until the daemon has ended by itself, which only a defect of it can cause; returns the error."""
        return await self._failure

    async def stop(self) -> None:
        """End the daemon: its repairs are interrupted, and their locks are released. The vote ends with the session. Idempotent."""
        await self._scope.aclose()

    def _failed(self, error: BaseException) -> None:
        self._host.trace("autorecovery.failed", error=repr(error))
        resolve(self._failure, error)

    async def _repeat(self, name: str, task: Callable[[], Awaitable[None]]) -> NoReturn:
        """Run a task, and begin it again after an error, at growing intervals."""
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._host.entropy.stream(f"autorecovery.{name}"))
        failures = self._metrics.failures.labels(name)
        while True:
            began = self._host.clock.monotonic()
            try:
                await task()
            except Exception as error:  # noqa: BLE001  a defect must not end the bookie in whose process the daemon runs
                failures.inc()
                self._host.trace("autorecovery.task_failed", task=name, error=repr(error))
            if self._host.clock.monotonic() - began > RETRY_LONGEST_S:
                backoff.reset()
            await sleep(self._host.clock, backoff.next_s())

    async def _stand(self) -> None:
        """Stand for election, and be the auditor until the vote is lost."""
        election = self._client.metadata.auditor
        self._metrics.elections.inc()
        await election.elected(self._name)
        self._host.trace("autorecovery.auditor_elected", auditor=self._name)
        pace = CopyPace(self._host.clock, 0, self._settings.busy_share)
        marks = self._name if self._settings.move_misplaced else ""
        audits = LedgerAudits(self._client, pace, self._metrics, obeys_disable=True, marks_misplaced_as=marks)
        auditor = Auditor(self._client, self._settings, audits, self._metrics, self._chore)
        self._metrics.is_auditor.set(1)
        try:
            await first_of([auditor.run(), self._refill(), election.lost()], name="term of the auditor")
        finally:
            self._metrics.is_auditor.set(0)

    async def _refill(self) -> NoReturn:
        """Refill the bookies in limbo. Only the auditor does, since a refill reads the metadata of all ledgers."""
        pause_s = REFILL_FIRST_S
        known: OpenRefillsKept = {}
        while True:
            await sleep(self._host.clock, pause_s)
            pause_s = REFILL_FIRST_S
            if await self._client.metadata.under_replication.is_enabled():
                reports = await refill_bookies_in_limbo(
                    self._client, settings=self._settings, has_living_writer=self._has_living_writer, known=known
                )
                pause_s = REFILL_FIRST_S if all(report.complete for report in reports) else REFILL_AGAIN_S

    async def _work(self) -> None:
        async with self._client.bookie_copies() as copies:
            worker = ReplicationWorker(
                self._client,
                copies,
                self._settings,
                name=self._name,
                busy_share=self._settings.busy_share,
                has_living_writer=self._has_living_writer,
            )
            await ReplicationLoop(self._client, worker, self._settings, self._metrics, self._name).run()
