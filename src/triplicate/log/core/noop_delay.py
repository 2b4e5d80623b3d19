"""When an idle writer appends the no-op that makes its last records readable. Pure: decided from times alone.

A no-op costs as much as an entry: a write and a sync at each bookie. The next entry makes the last records readable as well. Where entries
follow each other at short intervals, the no-op therefore waits for the next one for a bounded time, and is rarely needed.
"""

from __future__ import annotations

from collections import deque
from typing import Final

RECENT_INTERVALS: Final = 8
"""All of this number of intervals between entries must be short, or the no-op does not wait."""
INTERVALS_WAITED: Final = 2
"""The no-op waits for this many times the longest of the recent intervals."""


class NoopDelay:
    """The delay of the no-op behind the last entry. Times are seconds of one monotonic clock.

    Args:
        usual_s: the delay where entries are rare.
        longest_s: bound on the delay where they are frequent; 0 for the usual delay always.
    """

    def __init__(self, usual_s: float, longest_s: float) -> None:
        self._usual_s = usual_s
        self._longest_s = longest_s
        self._last_at = float("-inf")
        self._intervals: deque[float] = deque([float("inf")] * RECENT_INTERVALS, maxlen=RECENT_INTERVALS)

    def appended(self, now: float) -> None:
        """Record that an entry with readers was appended."""
        self._intervals.append(now - self._last_at)
        self._last_at = now

    def delay_s(self) -> float:
        """How long after the acknowledgement of the last entry the no-op follows it, seconds."""
        longest = max(self._intervals)
        if longest > self._longest_s:
            return self._usual_s
        return max(self._usual_s, min(INTERVALS_WAITED * longest, self._longest_s))
