"""The limit to the rate of copying, on a clock of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from triplicate.runtime.rate_limiter import SHORTEST_PAUSE_S, RateLimiter


class _Timer:
    def cancel(self) -> None: ...


class SteppingClock:
    """Every timer is due at once, and moves the time there."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def elapsed(self) -> float:
        return self.now_s

    def wall_us(self) -> int:
        return int(self.now_s * 1e6)

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> _Timer:
        self.pauses.append(when - self.now_s)
        self.now_s = when
        asyncio.get_running_loop().call_soon(callback, *args)
        return _Timer()


def paced(limiter: RateLimiter, clock: SteppingClock, steps: list[tuple[float, int]]) -> None:
    """Copy: for each step, seconds of work and bytes."""

    async def copy() -> None:
        for work_s, size_bytes in steps:
            clock.now_s += work_s
            await limiter.admit(size_bytes)

    asyncio.run(copy())


def test_bytes_leave_at_the_rate() -> None:
    clock = SteppingClock()
    paced(RateLimiter(clock, 1000), clock, [(0.0, 500)] * 4)
    assert clock.pauses == pytest.approx([0.5] * 4)
    assert clock.now_s == pytest.approx(102.0)


def test_a_pause_is_not_followed_by_a_burst() -> None:
    clock = SteppingClock()
    paced(RateLimiter(clock, 1000), clock, [(10.0, 500), (0.0, 500)])
    assert clock.pauses == pytest.approx([0.5, 0.5])


def test_a_delay_is_made_up_for_within_its_bound() -> None:
    clock = SteppingClock()
    paced(RateLimiter(clock, 1000, catch_up_s=1.0), clock, [(10.0, 600), (0.0, 600)])
    assert clock.pauses == pytest.approx([0.2]), "1.2 s of bytes, of which 1 s was free"


def test_short_pauses_are_accumulated_and_not_lost() -> None:
    clock = SteppingClock()
    paced(RateLimiter(clock, 1000), clock, [(0.0, 4)] * 10)
    assert clock.pauses == pytest.approx([0.012] * 3)
    assert min(clock.pauses) >= SHORTEST_PAUSE_S


def test_0_sets_no_limit() -> None:
    clock = SteppingClock()
    paced(RateLimiter(clock, 0), clock, [(0.0, 10**9)] * 3)
    assert clock.pauses == []
