"""The rolls of one writer: it asks the rolling policy, prepares the next ledger while the segment goes on, and begins the roll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import LogFenced, NoSuchLog, TriplicateError
from triplicate.log.core.head import Head
from triplicate.log.core.rolling_policy import RollingPolicy, RollStep
from triplicate.log.core.writer_machine import Event, LogLost, RollBegun, RollChecked, WriterMachine
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.writing.ledger_allocator import spare_age_s
from triplicate.log.writing.segment_transitions import SegmentTransitions
from triplicate.runtime import Backoff, TaskScope, Timer

PREPARE_PAUSE_S = 0.25
PREPARE_PAUSE_MAXIMUM_S = 30.0
"""Pauses between attempts to create the next ledger; the present segment continues meanwhile."""


class RollingWriter(Protocol):
    """The part of a writer that its roller uses."""

    @property
    def can_roll(self) -> bool:
        """Whether its segment accepts entries, and it is not about to end."""

    @property
    def segment_bytes(self) -> int: ...

    @property
    def has_records(self) -> bool:
        """Whether its segment holds records, or is about to."""

    def check_roll_at(self, size_bytes: int) -> None:
        """Call `consider` before each entry from this size of the segment on."""

    def begin_roll(self) -> None: ...

    def resume(self) -> None:
        """Send what waits."""

    def lose(self, error: TriplicateError) -> None:
        """Another writer has the log."""


class WriterSide:
    """A writer's machine, as its roller uses it (RollingWriter).

    Args:
        step: steps the machine and carries out its commands.
    """

    def __init__(self, machine: WriterMachine[Any], step: Callable[[Event], None]) -> None:
        self._machine = machine
        self._step = step

    @property
    def can_roll(self) -> bool:
        """Whether the segment accepts entries and the writer is not about to end."""
        return self._machine.can_roll

    @property
    def segment_bytes(self) -> int:
        """Bytes sent to the open segment."""
        return self._machine.segment.size_bytes

    @property
    def has_records(self) -> bool:
        """Whether the open segment holds records, or is about to."""
        return self._machine.has_records

    def check_roll_at(self, size_bytes: int) -> None:
        """Call `SegmentRoller.consider` before each entry from this size of the segment on."""
        self._machine.roll_check_bytes = size_bytes

    def begin_roll(self) -> None:
        """Close the open segment and continue in the next one as soon as everything sent is acknowledged."""
        self._step(RollBegun())

    def resume(self) -> None:
        """Send what waits."""
        self._step(RollChecked())

    def lose(self, error: TriplicateError) -> None:
        """End the writer: the log belongs to another writer, or was deleted."""
        self._step(LogLost(error))


class SegmentRoller:
    """Rolls the segments of one writer. It has one timer, and a task while a preparation runs.

    Args:
        scope: the writer's scope.
    """

    def __init__(
        self,
        transitions: SegmentTransitions,
        settings: LogClientSettings,
        metrics: LogMetrics,
        head: Head,
        scope: TaskScope,
        writer: RollingWriter,
    ) -> None:
        self._transitions = transitions
        self._metrics = metrics
        self._epoch = head.epoch
        self._scope = scope
        self._writer = writer
        self._host = transitions.client.host
        self._policy = RollingPolicy(head.settings, settings.reduced_retry_s, spare_age_s(settings))
        self._pauses = Backoff(PREPARE_PAUSE_S, PREPARE_PAUSE_MAXIMUM_S, self._host.entropy.stream("log.roll"))
        self._timer: Timer | None = None
        self._begun = asyncio.Event()

    def begin(self, *, reduced: bool) -> None:
        """A segment has begun. The log's settings may be others since the one before."""
        now = self._host.clock.monotonic()
        self._policy.adopt(self._transitions.settings)
        self._metrics.reduced.set(reduced)
        self._policy.begin(now, reduced=reduced)
        self._begun.set()
        self._schedule_check(now)

    async def roll(self) -> None:
        """Roll as soon as the next ledger exists. Returns when the next segment is open."""
        self._begun.clear()
        self._policy.request()
        self._check()
        await self._begun.wait()

    def consider(self) -> bool:
        """Apply the policy now. Called at a size of the segment, at a time, and after each preparation.

        Returns:
            Whether entries must be held back.
        """
        if not self._writer.can_roll:
            return False
        now = self._host.clock.monotonic()
        step = self._step(now)
        if step is RollStep.ROLL:
            self._writer.begin_roll()
            return True
        if step in (RollStep.PREPARE, RollStep.PREPARE_FULL):
            self._policy.preparing()
            self._scope.spawn(self._prepare(full=step is RollStep.PREPARE_FULL), name="prepare")
            step = self._step(now)
        self._schedule_check(now)
        return step is RollStep.HOLD

    def end(self) -> None:
        """Stop the timer, since the writer has ended. Idempotent."""
        self._stop()
        self._metrics.reduced.set(False)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _step(self, now: float) -> RollStep:
        return self._policy.step(now, self._writer.segment_bytes, has_records=self._writer.has_records)

    def _schedule_check(self, now: float) -> None:
        self._writer.check_roll_at(self._policy.check_bytes(now))
        self._stop()
        self._timer = self._host.clock.call_at(self._policy.check_at(now), self._check)

    def _check(self) -> None:
        if not self.consider():
            self._writer.resume()

    async def _prepare(self, *, full: bool) -> None:
        """Prepare the next ledger. If that fails, the present segment continues."""
        clock, name = self._host.clock, self._transitions.name
        try:
            await self._transitions.prepare(self._epoch, full=full)
        except (LogFenced, NoSuchLog) as error:
            self._writer.lose(error)
        except TriplicateError as error:
            if not full:  # A gauge shows that a reduced segment continues.
                self._host.trace("log.roll_postponed", log=name, error=repr(error))
                self._metrics.postponed.inc()
            self._policy.failed(clock.monotonic(), self._pauses.next_s(), full=full)
        else:
            self._pauses.reset()
            spare = self._transitions.spare
            made_at, is_full = (spare.made_at, spare.reduced is None) if spare is not None else (None, False)
            self._policy.prepared(clock.monotonic(), made_at, full=is_full)
        self._check()
