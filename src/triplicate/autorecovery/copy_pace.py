"""The pace of copies and checks: bytes per second, and a share of the time."""

from __future__ import annotations

from triplicate.autorecovery.core.duty_cycle import seconds_until_open
from triplicate.runtime import Clock, RateLimiter, sleep

PERIOD_S = 1.0


class CopyPace:
    """The pace of one process.

    Args:
        bytes_per_s: 0 sets no limit.
        share: share of each second in which copies and checks may begin; 1 sets no limit.
    """

    def __init__(self, clock: Clock, bytes_per_s: int, share: float = 1.0) -> None:
        self._clock = clock
        self._rate = RateLimiter(clock, bytes_per_s)
        self._share = share
        self._started = clock.monotonic()

    async def admit(self, size_bytes: int) -> None:
        """Count bytes that are copied, and wait until the pace admits more. Without bytes, it waits only for the share of the time."""
        await self._rate.admit(size_bytes)
        while (pause_s := seconds_until_open(self._clock.monotonic() - self._started, self._share, PERIOD_S)) > 0:
            await sleep(self._clock, pause_s)
