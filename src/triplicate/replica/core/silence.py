"""When a peer counts as silent: decided from times alone, apart from the connections that carry the questions.

Slow is not dead, and a watch that slept itself has seen nothing. So silence counts only while the watcher looks: where a look comes late,
whatever held it up (a busy machine, a stopped process, a suspended machine) may have held the peer up as well. A look that is a little late
counts for little, and one that is very late begins the watch again.
"""

from __future__ import annotations

from collections import deque

LATE_S = 0.3
"""No look counts for more silence than the interval and so much."""
BREAK_S = 2.0
"""A look that comes so much later than it was due begins the watch again."""
FLAP_WINDOW_S = 60.0
FLAP_FREE = 4
"""So many peers may be found silent within the window under the limit as it is set; each further one doubles it."""
FLAP_FACTOR_MAX = 16


class SilenceTimer:
    """How long one peer has been silent, as far as its watcher can tell. Times are seconds of one clock that counts suspended time.

    Args:
        interval_s: between two looks.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._counted_to = float("-inf")
        self.silent_s = 0.0
        """For how long it has been silent, as far as was looked."""

    def look(self, now: float) -> None:
        """The watcher looks; call it about every interval while a question is out, or about to be sent."""
        passed_s, self._counted_to = now - self._counted_to, now
        if passed_s > self._interval_s + BREAK_S:
            self.silent_s = 0.0
        else:
            self.silent_s += min(passed_s, self._interval_s + LATE_S)

    def heard(self, now: float) -> None:
        """The peer gave a sign of life, or nothing could be asked."""
        self._counted_to = now
        self.silent_s = 0.0


class SuspicionTimeout:
    """Which limit holds for the next silence: it grows where one conclusion follows another, so that take-overs, which cost work as well,
    do not keep an overloaded cluster overloaded.

    Args:
        limit_s: of silence, as it is set.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._concluded: deque[float] = deque(maxlen=FLAP_FREE + FLAP_FACTOR_MAX)

    def limit_s(self, now: float) -> float:
        """How long a peer must be silent for the next conclusion."""
        while self._concluded and self._concluded[0] < now - FLAP_WINDOW_S:
            self._concluded.popleft()
        excess = max(0, len(self._concluded) + 1 - FLAP_FREE)
        return self._limit_s * min(1 << excess, FLAP_FACTOR_MAX)

    def conclude(self, now: float) -> None:
        """A peer was found silent."""
        self._concluded.append(now)
