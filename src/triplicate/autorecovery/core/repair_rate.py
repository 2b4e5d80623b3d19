"""The rate of a repair over its last seconds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_S = 20.0
"""Rates are those of about this time: copies come in bursts, since they are paced."""


@dataclass(slots=True)
class RepairRate:
    """Counts that were seen at different times, the oldest first; those that the window does not need are forgotten."""

    _seen: deque[tuple[float, int, int]] = field(default_factory=deque)

    def observe(self, now: float, entries: int, size_bytes: int) -> tuple[float, float]:
        """Add the counts at a time, in seconds of the monotonic clock.

        Returns:
            Entries and bytes per second since the oldest counts; 0 for the first ones.
        """
        seen = self._seen
        seen.append((now, entries, size_bytes))
        while len(seen) > 2 and seen[1][0] <= now - WINDOW_S:
            seen.popleft()
        at, first_entries, first_bytes = seen[0]
        passed_s = now - at
        if passed_s <= 0:
            return 0.0, 0.0
        return (entries - first_entries) / passed_s, (size_bytes - first_bytes) / passed_s
