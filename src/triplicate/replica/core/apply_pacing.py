"""When a follower applies the log again. Pure: decided from times alone.

Each application has a fixed cost: a long poll, a change of threads and a commit. Under load a pause after each application collects more
entries for the next one. The pause grows with the duration of an application and is bounded. Without a recent application there is none, so
an entry that arrives after a while is applied at once. Where a session waits for a later position, the pause is short.
"""

from __future__ import annotations

from typing import Final

INTERVAL_MAX_S: Final = 0.1
"""Longest time from the beginning of one application to the next, if entries are there."""
INTERVAL_FACTOR: Final = 20
"""The time from the beginning of one application to the next, as a multiple of the duration of the first."""
AWAITED_FACTOR: Final = 2
"""The same while a session waits: at most half of the time goes to applications then."""


class ApplyPacing:
    """Spaces the applications of one follower. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._next_at = self._awaited_at = float("-inf")

    def wait_s(self, now: float) -> float:
        """How long to wait before entries are fetched for the next application, seconds; 0 for no wait."""
        return min(max(0.0, self._next_at - now), INTERVAL_MAX_S)

    def hurry(self) -> None:
        """A session waits for a later position: shorten the wait after the last application."""
        self._next_at = self._awaited_at

    def applied(self, began: float, ended: float, *, is_behind: bool) -> None:
        """Record an application of at least one record.

        Args:
            is_behind: whether further entries were ready when it began. The next application then follows at once.
        """
        took = ended - began
        self._next_at = ended if is_behind else began + min(INTERVAL_FACTOR * took, INTERVAL_MAX_S)
        self._awaited_at = ended if is_behind else began + min(AWAITED_FACTOR * took, INTERVAL_MAX_S)
