"""A stall is noticed after its limit, and progress of any kind postpones it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from triplicate.runtime.progress_watch import ProgressWatch


class TimerClock:
    """A clock that a test moves; it has at most one timer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[..., None]]] = []

    def monotonic(self) -> float:
        return self.now

    def elapsed(self) -> float:
        return self.now

    def wall_us(self) -> int:
        return 0

    def call_at(self, when: float, callback: Callable[..., None], *_: Any) -> TimerClock:
        self.timers.append((when, callback))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def step(self) -> None:
        ((self.now, callback),) = self.timers
        self.timers.clear()
        callback()


class Watched:
    def __init__(self) -> None:
        self.clock = TimerClock()
        self.measure: int | None = 1
        self.stalled_at: list[float] = []
        self.watch = ProgressWatch(self.clock, 60.0, lambda: self.measure, lambda: self.stalled_at.append(self.clock.now))


def test_without_progress_it_stalls_once_after_the_limit() -> None:
    watched = Watched()
    watched.watch.start()
    watched.watch.start()
    while watched.clock.timers:
        watched.clock.step()
    assert watched.stalled_at == [60.0]
    watched.watch.start()
    while watched.clock.timers:
        watched.clock.step()
    assert watched.stalled_at == [60.0, 120.0]


def test_progress_postpones_it() -> None:
    watched = Watched()
    watched.watch.start()
    for number in range(100):
        watched.measure = number
        for _ in range(3):
            watched.clock.step()
    assert not watched.stalled_at
    last = watched.clock.now
    while watched.clock.timers:
        watched.clock.step()
    assert 60.0 <= watched.stalled_at[0] - last + 45.0 <= 75.0


@pytest.mark.parametrize("ends", [lambda watched: setattr(watched, "measure", None), lambda watched: watched.watch.stop()])
def test_it_ends_when_nothing_is_awaited(ends: Callable[[Watched], None]) -> None:
    watched = Watched()
    watched.watch.start()
    watched.clock.step()
    ends(watched)
    while watched.clock.timers:
        watched.clock.step()
    assert not watched.stalled_at
    assert watched.clock.now <= 30.0
