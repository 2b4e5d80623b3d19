"""Writers of the log workload: they compete for a log, are deposed, append unaware of that, and return."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.client import Client
from triplicate.errors import HandleClosed, LogFenced, WindowFull
from triplicate.log import Logs, LogWriter
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.log_rules import LogAcknowledged, LogAcquired, LogReadable, LogSubmitted
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel, RecordGenerator, records_of, wait_for

IDLE_S = 3.0
"""Once faults are over, acknowledged records are readable after this time."""
QUIET_APPENDS = 3
"""Appends that must succeed for every writer once faults are over."""


class LogWriterActor:
    """Acquires a log, appends, loses or leaves it, and waits for its next tenure. Once faults are over it has one more, which must succeed.

    Args:
        log: the log that it writes.
        idle_mean_s: average pause between its tenures.
        tenure_mean_s: average length of a tenure.
    """

    def __init__(self, scene: LogModel, name: str, log: str, *, idle_mean_s: float, tenure_mean_s: float, first_s: float) -> None:
        self._scene = scene
        self.name = name
        self._log = log
        self._idle_mean_s = idle_mean_s
        self._tenure_mean_s = tenure_mean_s
        self._next_s = first_s
        self._chance = scene.chance(name)
        self._lives = 0

    async def __call__(self, client: Client) -> None:
        self._lives += 1
        scene = self._scene
        scribe = RecordGenerator(f"{self.name}.{self._lives}", self._chance, scene.load.value_high_bytes)
        logs = scene.logs(client)
        while True:
            await self._wait_turn()
            async with TaskScope(f"turn of {self.name}") as scope:
                writer = await self._take(logs)
                if writer is not None and await _Tenure(scene, logs, writer, self.name, scribe, scope).play(self._tenure()):
                    return

    def _tenure(self) -> float:
        return self._chance.expovariate(1.0 / self._tenure_mean_s)

    async def _wait_turn(self) -> None:
        scene, pause_s = self._scene, self._next_s
        self._next_s = self._chance.expovariate(1.0 / self._idle_mean_s)
        if scene.is_quiet:
            # All writers want the log now; a random delay gives each some time to write.
            await asyncio.sleep(self._chance.uniform(0.1, 4.0))
        elif self._chance.random() < 0.7:
            hurry = await wait_for(scene.hurry, pause_s)
            if hurry:
                await scene.until_quiet(self._chance.uniform(0.0, 0.5))
        else:
            await scene.until_quiet(pause_s)

    async def _take(self, logs: Logs) -> LogWriter | None:
        scene = self._scene
        try:
            # Polite writers wait until the owner seems dead; others do not. Some give up on the way.
            take_over = scene.is_quiet or self._chance.random() < 0.7
            patience_s = self._chance.uniform(0.0, 0.3) if self._chance.random() < 0.1 and not scene.is_quiet else None
            async with asyncio.timeout(patience_s):
                writer = await logs.writer(self._log, owner=self.name, take_over=take_over)
        except (TimeoutError, *UNKNOWN_OUTCOMES) as error:
            scene.trouble(error)
            return None
        scene.add(LogAcquired(scene.time(), self._log, self.name, writer.epoch, writer.start_offset))
        scene.owner[self._log] = self.name
        scene.hurry.clear()
        return writer


class _Tenure:
    """One epoch of one writer."""

    def __init__(self, scene: LogModel, logs: Logs, writer: LogWriter, name: str, scribe: RecordGenerator, scope: TaskScope) -> None:
        self._scene = scene
        self._logs = logs
        self._writer = writer
        self._name = name
        self._scribe = scribe
        self._scope = scope
        self._chance = scene.chance(name, writer.epoch)

    async def play(self, tenure_s: float) -> bool:
        """Write until the time is over or the log is lost. True if nothing is left to do."""
        scene, writer = self._scene, self._writer
        until_s = scene.time() + tenure_s
        try:
            while writer.failure is None and scene.time() < until_s and not scene.is_quiet:
                await self._burst()
                await scene.until_quiet(self._chance.expovariate(1.0 / scene.load.pause_mean_s))
            if writer.failure is not None:
                await self._go_on_regardless()
            elif scene.is_quiet:
                await self._prove()
                await writer.close()
                scene.count("closed")
                return True
            else:
                await self._leave()
        except UNKNOWN_OUTCOMES as error:
            scene.trouble(error)
        finally:
            scene.count("rolls", writer.rolls)
            scene.count("repairs", writer.repairs)
            await writer.abandon()
        return False

    async def _leave(self) -> None:
        way = self._chance.choice(["close", "close", "abandon", "stay"])
        if way == "stay":
            # An idle owner, which a later take-over fences.
            await self._scene.until_quiet(self._chance.uniform(1.0, 10.0))
            await self._go_on_regardless()
        elif way == "close":
            await self._writer.close()
            self._scene.count("closed")

    async def _go_on_regardless(self) -> None:
        """Append as a deposed writer, which does not know that it is one: none of its appends may be acknowledged."""
        for _ in range(self._chance.randrange(1, 5)):
            await self._burst()
            await self._scene.until_quiet(self._chance.uniform(0.0, 1.0))
        self._scene.count("zombies")

    async def _burst(self) -> None:
        """Append a few times, without waiting where the writer allows that."""
        for _ in range(self._chance.randrange(1, self._scene.load.burst_high + 1)):
            way = self._chance.random()
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
                self._scene.count("window_full")
            except UNKNOWN_OUTCOMES as error:
                self._scene.trouble(error)

    async def _prove(self) -> None:
        """Check that appends work once faults are over, and that acknowledged records become readable without a close."""
        scene, writer = self._scene, self._writer
        for _ in range(QUIET_APPENDS):
            values, keys = self._scribe.values(1)
            self._offer(values, keys)
            self._acknowledged(await writer.append_entry(values, keys=keys), values, keys)
        reached = writer.acknowledged_offset
        # An idle writer makes them readable by itself.
        await asyncio.sleep(IDLE_S)
        if writer.failure is not None:
            raise writer.failure
        scene.add(LogReadable(scene.time(), writer.name, reached))
        while await scene.ask_end(self._logs, writer.name, self._name) < reached:
            if writer.failure is not None:
                raise writer.failure
            await asyncio.sleep(0.2)

    async def _append(self) -> None:
        values, keys = self._scribe.values(1)
        self._offer(values, keys)
        try:
            offset = await self._writer.append(values[0], key=keys[0] if keys else None)
        except (HandleClosed, *UNKNOWN_OUTCOMES) as error:
            # Closed while this append waited for the window: it was not submitted.
            self._failed(error)
        else:
            self._acknowledged(range(offset, offset + 1), values, keys)

    def _append_entry(self) -> None:
        values, keys = self._scribe.values(self._chance.randrange(1, 5))
        future = self._writer.append_entry_nowait(values, keys=keys)
        self._offer(values, keys)

        def settled(done: asyncio.Future[range]) -> None:
            error = None if done.cancelled() else done.exception()
            if error is not None:
                self._failed(error)
            elif not done.cancelled():
                self._acknowledged(done.result(), values, keys)

        future.add_done_callback(settled)

    async def _append_many(self) -> None:
        values, keys = self._scribe.values(self._chance.randrange(1, 9))
        self._offer(values, keys)
        self._acknowledged(await self._writer.append_many(values, keys=keys), values, keys)

    async def _noop(self) -> None:
        writer = self._writer
        before = writer.acknowledged_offset
        try:
            await writer.noop()
        except (HandleClosed, *UNKNOWN_OUTCOMES) as error:
            self._failed(error)
        else:
            self._scene.add(LogReadable(self._scene.time(), writer.name, before))

    async def _abort(self) -> None:
        await self._writer.control("abort", {"by": self._name})

    def _offer(self, values: list[bytes], keys: list[bytes] | None) -> None:
        writer = self._writer
        self._scene.add(LogSubmitted(self._scene.time(), writer.name, self._name, writer.epoch, records_of(values, keys)))

    def _acknowledged(self, offsets: Sequence[int], values: list[bytes], keys: list[bytes] | None) -> None:
        assert len(offsets) == len(values), f"{len(values)} records were appended as {offsets}"
        writer, scene, records = self._writer, self._scene, records_of(values, keys)
        scene.count("acknowledged", len(values))
        # Batches of publishers may lie between the entries of one call.
        for offset, record in zip(offsets, records, strict=True):
            scene.add(LogAcknowledged(scene.time(), writer.name, self._name, writer.epoch, offset, (record,)))

    def _failed(self, error: BaseException) -> None:
        self._scene.stage.note_unknown(error)
        if isinstance(error, LogFenced):
            self._scene.count("fenced")
