"""A timer that looks for overdue answers while any are awaited."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import Clock, Timer


class SweepTimer:
    """Belongs to one channel. It rests while nothing is awaited.

    A sweep that is due but begins late is skipped: this process was stopped or busy, so requests may be unsent, and answers unread.
    The next sweep judges them.

    Args:
        sweep: judges what is overdue at a time of the monotonic clock; returns whether anything is still awaited.
    """

    __slots__ = ("_clock", "_late_at", "_period_s", "_sweep", "_timer", "_was_skipped")

    def __init__(self, clock: Clock, period_s: float, sweep: Callable[[float], bool]) -> None:
        self._clock = clock
        self._period_s = period_s
        self._sweep = sweep
        self._timer: Timer | None = None
        self._late_at = 0.0
        self._was_skipped = False
        """Whether the last sweep was skipped."""

    def arm(self) -> None:
        """Schedule the next sweep after one period, unless one is scheduled already."""
        if self._timer is None:
            now = self._clock.monotonic()
            self._late_at = now + 2 * self._period_s
            self._timer = self._clock.call_at(now + self._period_s, self._run)

    def cancel(self) -> None:
        """Stop. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        self._was_skipped = now > self._late_at and not self._was_skipped
        if self._was_skipped or self._sweep(now):
            self.arm()
