"""Writers of the log workload: they compete for a log, are deposed, append unaware of that, and return."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.client import Client
from triplicate.errors import HandleClosed, LogFenced, WindowFull
from triplicate.log import Logs, LogWriter
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.log_rules import LogAcknowledged, LogAcquired, LogReadable, LogSubmitted
from triplicate_simulator.workloads.log.log_model import KEYS, UNKNOWN_OUTCOMES, LogModel, RecordGenerator, records_of
from triplicate_simulator.workloads.log.log_numbering import NumberedAppends
from triplicate_simulator.workloads.recreation.held_nodes import wait_for

IDLE_S = 3.0
"""Once faults are over, acknowledged records are readable after this time."""
FINAL_APPENDS = 3
"""Appends that must succeed for every writer once faults are over."""


class LogWriterActor:
    """Acquires a log, appends, loses or leaves it, and waits for its next tenure. Once faults are over it has one more, which must succeed.

    Args:
        log: the log that it writes.
        idle_mean_s: average pause between its tenures.
        tenure_mean_s: average length of a tenure.
    """

    def __init__(self, model: LogModel, name: str, log: str, *, idle_mean_s: float, tenure_mean_s: float, first_s: float) -> None:
        self._model = model
        self.name = name
        self._log = log
        self._idle_mean_s = idle_mean_s
        self._tenure_mean_s = tenure_mean_s
        self._next_s = first_s
        self._rng = model.rng(name)
        self._lives = 0

    async def __call__(self, client: Client) -> None:
        self._lives += 1
        model = self._model
        generator = RecordGenerator(f"{self.name}.{self._lives}", self._rng, model.load.value_high_bytes)
        logs = model.logs(client)
        while True:
            await self._wait_turn()
            async with TaskScope(f"turn of {self.name}") as scope:
                writer = await self._acquire(logs)
                if writer is not None and await _WriterEpoch(model, logs, writer, self.name, generator, scope).run(self._tenure()):
                    return

    def _tenure(self) -> float:
        return self._rng.expovariate(1.0 / self._tenure_mean_s)

    async def _wait_turn(self) -> None:
        model, pause_s = self._model, self._next_s
        self._next_s = self._rng.expovariate(1.0 / self._idle_mean_s)
        if model.faults_are_over:
            # All writers want the log now; a random delay gives each some time to write.
            await asyncio.sleep(self._rng.uniform(0.1, 4.0))
        elif self._rng.random() < 0.7:
            takeover_wanted = await wait_for(model.takeover_wanted, pause_s)
            if takeover_wanted:
                await model.pause(self._rng.uniform(0.0, 0.5))
        else:
            await model.pause(pause_s)

    async def _acquire(self, logs: Logs) -> LogWriter | None:
        model = self._model
        try:
            # Polite writers wait until the owner seems dead; others do not. Some give up on the way.
            take_over = model.faults_are_over or self._rng.random() < 0.7
            timeout_s = self._rng.uniform(0.0, 0.3) if self._rng.random() < 0.1 and not model.faults_are_over else None
            async with asyncio.timeout(timeout_s):
                writer = await logs.writer(self._log, owner=self.name, take_over=take_over)
        except (TimeoutError, *UNKNOWN_OUTCOMES) as error:
            model.count_error(error)
            return None
        model.add(LogAcquired(model.time(), self._log, self.name, writer.epoch, writer.start_offset))
        model.owner[self._log] = self.name
        model.takeover_wanted.clear()
        return writer


class _WriterEpoch:
    """One epoch of one writer."""

    def __init__(self, model: LogModel, logs: Logs, writer: LogWriter, name: str, generator: RecordGenerator, scope: TaskScope) -> None:
        self._model = model
        self._logs = logs
        self._writer = writer
        self._name = name
        self._generator = generator
        self._scope = scope
        self._rng = model.rng(name, writer.epoch)
        self._numbered = NumberedAppends(model, writer, name, writer.epoch)

    async def run(self, tenure_s: float) -> bool:
        """Write until the time is over or the log is lost. True if nothing is left to do."""
        model, writer = self._model, self._writer
        until_s = model.time() + tenure_s
        try:
            if model.load.encrypted:
                await self._logs.rotate_key(writer.name, tuple(KEYS)[writer.epoch % 2])
            while writer.failure is None and model.time() < until_s and not model.faults_are_over:
                await self._burst()
                await model.pause(self._rng.expovariate(1.0 / model.load.pause_mean_s))
            if writer.failure is not None:
                await self._append_after_loss()
            elif model.faults_are_over:
                await self._prove()
                await writer.close()
                model.count("closed")
                return True
            else:
                await self._leave()
        except UNKNOWN_OUTCOMES as error:
            model.count_error(error)
        finally:
            model.count("rolls", writer.rolls)
            model.count("repairs", writer.repairs)
            await writer.abandon()
        return False

    async def _leave(self) -> None:
        way = self._rng.choice(["close", "close", "abandon", "stay"])
        if way == "stay":
            # An idle owner, which a later take-over fences.
            await self._model.pause(self._rng.uniform(1.0, 10.0))
            await self._append_after_loss()
        elif way == "close":
            await self._writer.close()
            self._model.count("closed")

    async def _append_after_loss(self) -> None:
        """Append as a deposed writer, which does not know that it is one: none of its appends may be acknowledged."""
        for _ in range(self._rng.randrange(1, 5)):
            await self._burst()
            await self._model.pause(self._rng.uniform(0.0, 1.0))
        self._model.count("zombies")

    async def _burst(self) -> None:
        """Append a few times, without waiting where the writer allows that."""
        for _ in range(self._rng.randrange(1, self._model.load.burst_high + 1)):
            way = self._rng.random()
            try:
                if way < 0.45:
                    self._scope.spawn(self._append(), name="append")
                    # The record is submitted when the task first runs, before anything that follows.
                    await asyncio.sleep(0)
                elif way < 0.75:
                    self._append_entry()
                elif way < 0.85:
                    await self._append_many()
                elif way < 0.95:
                    self._scope.spawn(self._noop(), name="noop")
                    await asyncio.sleep(0)
                else:
                    await self._abort()
            except WindowFull:
                self._model.count("window_full")
            except UNKNOWN_OUTCOMES as error:
                self._model.count_error(error)
        if self._model.load.producers:
            self._scope.spawn(self._numbered.maybe_append(), name="numbered")

    async def _prove(self) -> None:
        """Check that appends work once faults are over, and that acknowledged records become readable without a close."""
        model, writer = self._model, self._writer
        for _ in range(FINAL_APPENDS):
            values, keys = self._generator.values(1)
            self._note_submitted(values, keys)
            self._note_acknowledged(await writer.append_entry(values, keys=keys), values, keys)
        await self._numbered.append_last()
        reached = writer.acknowledged_offset
        # An idle writer makes them readable by itself.
        await asyncio.sleep(IDLE_S)
        if writer.failure is not None:
            raise writer.failure
        model.add(LogReadable(model.time(), writer.name, reached))
        while await model.read_end(self._logs, writer.name, self._name) < reached:
            if writer.failure is not None:
                raise writer.failure
            await asyncio.sleep(0.2)

    async def _append(self) -> None:
        values, keys = self._generator.values(1)
        self._note_submitted(values, keys)
        try:
            offset = await self._writer.append(values[0], key=keys[0] if keys else None)
        except (HandleClosed, *UNKNOWN_OUTCOMES) as error:
            # Closed while this append waited for the window: it was not submitted.
            self._note_failed(error)
        else:
            self._note_acknowledged(range(offset, offset + 1), values, keys)

    def _append_entry(self) -> None:
        values, keys = self._generator.values(self._rng.randrange(1, 5))
        future = self._writer.append_entry_nowait(values, keys=keys)
        self._note_submitted(values, keys)

        def settled(done: asyncio.Future[range]) -> None:
            error = None if done.cancelled() else done.exception()
            if error is not None:
                self._note_failed(error)
            elif not done.cancelled():
                self._note_acknowledged(done.result(), values, keys)

        future.add_done_callback(settled)

    async def _append_many(self) -> None:
        values, keys = self._generator.values(self._rng.randrange(1, 9))
        self._note_submitted(values, keys)
        self._note_acknowledged(await self._writer.append_many(values, keys=keys), values, keys)

    async def _noop(self) -> None:
        writer = self._writer
        before = writer.acknowledged_offset
        try:
            await writer.noop()
        except (HandleClosed, *UNKNOWN_OUTCOMES) as error:
            self._note_failed(error)
        else:
            self._model.add(LogReadable(self._model.time(), writer.name, before))

    async def _abort(self) -> None:
        await self._writer.control("abort", {"by": self._name})

    def _note_submitted(self, values: list[bytes], keys: list[bytes] | None) -> None:
        writer = self._writer
        self._model.add(LogSubmitted(self._model.time(), writer.name, self._name, writer.epoch, records_of(values, keys)))

    def _note_acknowledged(self, offsets: Sequence[int], values: list[bytes], keys: list[bytes] | None) -> None:
        assert len(offsets) == len(values), f"{len(values)} records were appended as {offsets}"
        writer, model, records = self._writer, self._model, records_of(values, keys)
        model.count("acknowledged", len(values))
        # Batches of publishers may lie between the entries of one call.
        for offset, record in zip(offsets, records, strict=True):
            model.add(LogAcknowledged(model.time(), writer.name, self._name, writer.epoch, offset, (record,)))

    def _note_failed(self, error: BaseException) -> None:
        self._model.context.count_unknown(error)
        if isinstance(error, LogFenced):
            self._model.count("fenced")
