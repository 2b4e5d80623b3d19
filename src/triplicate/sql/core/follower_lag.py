"""How late a follower has applied the log lately. Pure: decided from times alone."""

from __future__ import annotations

from typing import Final

SHOWN_S: Final = 10.0
"""A copy that has applied nothing for this time has no lag: the log is at rest, or the copy leads."""


class FollowerLag:
    """The time between the append of the last applied entry by the leader and its application here.

    It is the difference of two machines' clocks, so it is as exact as they are.
    """

    def __init__(self) -> None:
        self._applied_at = float("-inf")
        self._lag_s = 0.0

    def applied(self, now: float, now_us: int, appended_us: int) -> None:
        """Record an application.

        Args:
            now: seconds of a monotonic clock.
            now_us, appended_us: µs since the epoch, of this machine and of the leader's at the append.
        """
        self._applied_at = now
        self._lag_s = max(0.0, (now_us - appended_us) / 1e6)

    def seconds(self, now: float) -> float:
        """The lag of the last application; 0 if it was long ago."""
        return self._lag_s if now - self._applied_at <= SHOWN_S else 0.0
