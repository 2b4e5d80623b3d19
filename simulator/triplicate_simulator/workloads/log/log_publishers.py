"""Publishers of the log workload: tasks stage ledgers, drivers publish them as batches, once, also after an unknown outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.client import Client
from triplicate.errors import LogOwned, PublisherForgotten
from triplicate.log import Logs, PublishResult, StagedLedger, StagingOrigin
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.log_rules import BatchPublished, BatchRefused, BatchStaged
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel, RecordGenerator, records_of

CROWD_S = 3.0
"""Crowded publishers publish at multiples of this time."""


GIVE_UP_SHARE, GIVE_UP_UNKNOWN_SHARE = 0.4, 0.7
"""Share of failures after which an attempt is given up; the higher share applies where its outcome is unknown."""


REPEAT_KEPT_MAX, REPEAT_SHARE, REPEAT_AFTER_S = 100, 0.7, (5.0, 25.0)
"""If no more publishers than this are kept, drivers sometimes publish their last batch again before they continue, and after the end."""


class Application:
    """State that the drivers of one application share: the next batch. It advances when a driver knows that the batch is in the log."""

    def __init__(self, name: str, log: str, batches: int) -> None:
        self.name = name
        self.log = log
        self.batches = batches
        self.next_batch = 0


class PublisherActor:
    """Publishes one batch of its application after the other; rivals do the same with ledgers of their own.

    Args:
        pause_mean_s: average pause between batches.
    """

    def __init__(self, model: LogModel, name: str, application: Application, pause_mean_s: float) -> None:
        self._model = model
        self.name = name
        self._application = application
        self._pause_mean_s = pause_mean_s
        self._rng = model.rng(name)
        self._attempts = 0
        self._repeats = model.rng(name, "repeats")
        self._last: tuple[int, str, Sequence[StagedLedger]] | None = None
        """The last batch that this driver published."""

    async def __call__(self, client: Client) -> None:
        model, application = self._model, self._application
        logs = model.logs(client)
        while application.next_batch < application.batches:
            await model.pause(self._rng.expovariate(1.0 / self._pause_mean_s))
            await self._maybe_repeat(logs)
            batch = application.next_batch
            if batch < application.batches and await self._batch(logs, batch):
                application.next_batch = max(application.next_batch, batch + 1)
        await model.pause(self._repeats.uniform(*REPEAT_AFTER_S) if model.load.publishers_kept < REPEAT_KEPT_MAX else 0.0)
        await self._maybe_repeat(logs)

    async def _batch(self, logs: Logs, batch: int) -> bool:
        """Stage and publish. True if the batch is in the log."""
        self._attempts += 1
        attempt = f"{self.name}#{self._attempts}"
        try:
            staged, records = await self._context(logs, batch, attempt)
        except UNKNOWN_OUTCOMES as error:
            self._model.count_error(error)
            await asyncio.sleep(0.2)
            return False
        application = self._application
        self._model.add(BatchStaged(self._model.time(), application.log, application.name, batch, attempt, records))
        self._model.staged.append(application.log)
        self._model.has_staged.set()
        give_up_share, is_unknown = GIVE_UP_SHARE, False
        while True:
            try:
                return await self._publish(logs, batch, attempt, staged)
            except LogOwned as error:
                # The living writer did not list it in time, and no part of it is in the log.
                self._model.count_error(error)
                self._model.count("publish_refused")
                await asyncio.sleep(self._rng.uniform(0.3, 2.0))
            except PublisherForgotten as error:
                # Some attempt at the batch, perhaps this one, is in the log; it was so long ago that its offsets are forgotten.
                self._note_forgotten(batch, attempt, error)
                await self._discard(logs, staged)
                return True
            except (TimeoutError, *UNKNOWN_OUTCOMES) as error:
                self._model.count_error(error)
                self._model.count("publish_unknown")
                give_up_share, is_unknown = GIVE_UP_UNKNOWN_SHARE, True
                await asyncio.sleep(self._rng.uniform(0.0, 0.5))
            if self._rng.random() < give_up_share:
                break
        if not is_unknown:
            self._model.add(BatchRefused(self._model.time(), application.log, application.name, batch, attempt))
        # Give this attempt up, as a driver does that aborts the batch after its commit seemed to fail. The next attempt stages new ledgers.
        if self._rng.random() < 0.7:
            await self._discard(logs, staged)
        return False

    async def _maybe_repeat(self, logs: Logs) -> None:
        if self._model.load.publishers_kept < REPEAT_KEPT_MAX and self._last is not None and self._repeats.random() < REPEAT_SHARE:
            await self._repeat(logs, *self._last)

    async def _repeat(self, logs: Logs, batch: int, attempt: str, staged: Sequence[StagedLedger]) -> None:
        """Publish again a batch of a while ago, as a driver does that has lost its notes: it must have no effect."""
        application = self._application
        try:
            published = await logs.publish(application.log, staged, application=application.name, batch=batch, publisher=self.name)
        except PublisherForgotten as error:
            self._note_forgotten(batch, attempt, error)
        except UNKNOWN_OUTCOMES as error:
            self._model.count_error(error)
        else:
            self._note_published(batch, attempt, published)

    def _note_forgotten(self, batch: int, attempt: str, error: PublisherForgotten) -> None:
        """Record that the log has the batch, at unknown offsets."""
        application = self._application
        self._model.count_error(error)
        self._model.count("published_and_forgotten")
        self._model.add(BatchPublished(self._model.time(), application.log, application.name, batch, attempt, -1, -1, True))

    async def _context(self, logs: Logs, batch: int, attempt: str) -> tuple[list[StagedLedger], tuple[tuple[bytes, ...], ...]]:
        tasks = self._rng.randrange(1, self._model.load.tasks + 1)
        async with TaskScope(f"tasks of {attempt}") as scope:
            running = [scope.spawn(self._task(logs, batch, attempt, number), name="task") for number in range(tasks)]
        done = [task.result() for task in running]
        return [staged for staged, _ in done], tuple(records for _, records in done)

    async def _task(self, logs: Logs, batch: int, attempt: str, partition: int) -> tuple[StagedLedger, tuple[bytes, ...]]:
        """Write one staging ledger, which may stay empty."""
        application = self._application
        generator = RecordGenerator(f"{application.name}/{batch}/{attempt}/{partition}", self._rng, self._model.load.value_high_bytes)
        origin = StagingOrigin(application.log, application.name, batch=batch, partition=partition, attempt=self._attempts)
        records: tuple[bytes, ...] = ()
        async with await logs.staging(origin) as writer:
            # A task may have no records, but mostly not all of them.
            for _ in range(self._rng.randrange(partition == 0, 4)):
                values, keys = generator.values(self._rng.randrange(1, 6))
                await writer.append_many(values, keys=keys)
                records += records_of(values, keys)
        return await writer.seal(), records

    async def _publish(self, logs: Logs, batch: int, attempt: str, staged: Sequence[StagedLedger]) -> bool:
        application = self._application
        if self._model.load.crowded and not self._model.faults_are_over:
            await self._model.pause(CROWD_S - self._model.time() % CROWD_S)
        # With ids alone the publisher reads the ledgers, as one that lost the results of its tasks.
        ledgers: list[int | StagedLedger] = [item if self._rng.random() < 0.8 else item.ledger_id for item in staged]
        # Drivers may be interrupted at any time; the outcome of the batch is then unknown.
        timeout_s = self._rng.uniform(0.0, 16 * self._model.context.plan.metadata_high_s) if self._rng.random() < 0.35 else None
        async with asyncio.timeout(None if self._model.faults_are_over else timeout_s):
            published = await logs.publish(application.log, ledgers, application=application.name, batch=batch, publisher=self.name)
        self._note_published(batch, attempt, published)
        if published.already:
            self._model.count("published_already")
            await self._discard(logs, staged)
        else:
            self._model.count("batches_published")
            self._model.count("batches_admitted", published.by_writer)
            self._last = (batch, attempt, staged)
            if self._rng.random() < 0.3:
                again = await logs.publish(application.log, ledgers, application=application.name, batch=batch, publisher=self.name)
                assert again.already, f"batch {batch} of {application.name} was published twice by {self.name}: {published}, {again}"
                self._note_published(batch, attempt, again)
        return True

    def _note_published(self, batch: int, attempt: str, published: PublishResult) -> None:
        application, first, end = self._application, published.first_offset, published.end_offset
        if published.batch != batch:
            first = end = -1
        self._model.add(
            BatchPublished(self._model.time(), application.log, application.name, batch, attempt, first, end, published.already)
        )

    async def _discard(self, logs: Logs, staged: Sequence[StagedLedger]) -> None:
        """Delete ledgers that are not in the log. The sweep deletes those that cannot be deleted now."""
        try:
            gone = await logs.discard(self._application.log, [item.ledger_id for item in staged])
        except UNKNOWN_OUTCOMES as error:
            self._model.count_error(error)
        else:
            self._model.count("staged_discarded", len(gone))
