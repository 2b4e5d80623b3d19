"""Notices that something has made no progress for a limit of time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime.ports import Clock, Timer

POLLS = 4
"""Polls without progress that make a stall. It is therefore noticed after the limit, and before the limit and a quarter."""


class ProgressWatch:
    """Polls a measure with a timer, so that progress itself costs nothing.

    Args:
        limit_s: time without progress, seconds.
        measure: returns a number that changes with progress; None if nothing is awaited, which ends the watch.
        on_stall: called once when `limit_s` has passed without progress. The watch has ended then.
    """

    __slots__ = ("_clock", "_last", "_measure", "_on_stall", "_polls", "_timer", "limit_s")

    def __init__(self, clock: Clock, limit_s: float, measure: Callable[[], int | None], on_stall: Callable[[], None]) -> None:
        self._clock = clock
        self.limit_s = limit_s
        self._measure = measure
        self._on_stall = on_stall
        self._timer: Timer | None = None
        self._last: int | None = None
        self._polls = 0

    def start(self) -> None:
        """Begin to watch, unless the watch runs already."""
        if self._timer is None:
            self._last, self._polls = self._measure(), 0
            self._schedule()

    def stop(self) -> None:
        """End the watch. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + self.limit_s / POLLS, self._poll)

    def _poll(self) -> None:
        self._timer = None
        measured = self._measure()
        if measured is None:
            return
        self._polls = self._polls + 1 if measured == self._last else 0
        self._last = measured
        if self._polls < POLLS:
            self._schedule()
        else:
            self._on_stall()
