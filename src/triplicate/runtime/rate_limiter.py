"""A limit to the rate of background copying."""

from __future__ import annotations

from triplicate.runtime.ports import Clock
from triplicate.runtime.task_scope import sleep_until

SHORTEST_PAUSE_S = 0.01
"""Shorter pauses are accumulated."""


class RateLimiter:
    """Limits a rate in bytes per second. Used by one task.

    Args:
        bytes_per_s: the limit; 0 for none.
        catch_up_s: seconds of delay by the caller that it may make up for by a burst. Without it, a pause is not followed by a burst.
    """

    def __init__(self, clock: Clock, bytes_per_s: int, catch_up_s: float = 0.0) -> None:
        self._clock = clock
        self._bytes_per_s = bytes_per_s
        self._catch_up_s = catch_up_s
        self._free_at = clock.monotonic()

    async def admit(self, size_bytes: int) -> None:
        """Count bytes that were copied, and wait until the rate admits more."""
        if self._bytes_per_s <= 0:
            return
        now = self._clock.monotonic()
        self._free_at = max(self._free_at, now - self._catch_up_s) + size_bytes / self._bytes_per_s
        if self._free_at - now >= SHORTEST_PAUSE_S:
            await sleep_until(self._clock, self._free_at)
