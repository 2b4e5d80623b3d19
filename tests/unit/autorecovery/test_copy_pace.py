"""The pace of copies and checks, in virtual time."""

from __future__ import annotations

import pytest

from triplicate.autorecovery import CopyPace
from triplicate.sim.host import SimulatedClock
from triplicate.sim.virtual_loop import VirtualLoop


def seconds_of(bytes_per_s: int, share: float, sizes: list[int]) -> float:
    loop = VirtualLoop()
    clock = SimulatedClock(loop)

    async def main() -> float:
        pace = CopyPace(clock, bytes_per_s, share)
        began = clock.monotonic()
        for size_bytes in sizes:
            await pace.admit(size_bytes)
        return clock.monotonic() - began

    return loop.run_until_complete(main())


def test_without_limits_nothing_waits() -> None:
    assert seconds_of(0, 1.0, [1000] * 100) == 0


def test_the_rate_is_kept() -> None:
    assert seconds_of(1000, 1.0, [100] * 50) == pytest.approx(5.0)


def test_copies_begin_only_in_the_share_of_each_second() -> None:
    whole, quarter = seconds_of(1000, 1.0, [100] * 100), seconds_of(1000, 0.25, [100] * 100)
    assert quarter > 2.5 * whole
