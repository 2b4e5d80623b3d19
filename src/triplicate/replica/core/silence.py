"""When a peer counts as silent. Pure: decided from times alone.

A slow peer has not failed, and an observer that was stopped has observed nothing. Silence is therefore counted only from one observation to
the next. A busy machine, a stopped process or a suspended machine delays an observation, and may have delayed the peer too. A late
observation counts at most as one interval and `LATE_S`; a very late one resets the timer.

A peer that answers late has a busy event loop, and may answer later still. Its limit is therefore several times its latest answer of the
last minute or so, if that is more than the configured limit.
"""

from __future__ import annotations

from collections import deque

LATE_S = 0.3
"""One observation adds at most the interval and this time to the silence."""
BREAK_S = 2.0
"""An observation that is later than this resets the timer."""
FLAP_WINDOW_S = 60.0
FLAP_FREE = 4
"""Number of conclusions within the window with the configured limit. Each further one doubles the limit."""
FLAP_FACTOR_MAX = 16


class SilenceTimer:
    """Measures the silence of one peer. Times are seconds of one clock that counts suspended time.

    Args:
        interval_s: between two observations.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._counted_to = float("-inf")
        self.silent_s = 0.0
        """The silence observed so far."""

    def observe(self, now: float) -> None:
        """Count the time since the last observation. To be called about every interval while a probe is outstanding or due."""
        passed_s, self._counted_to = now - self._counted_to, now
        if passed_s > self._interval_s + BREAK_S:
            self.silent_s = 0.0
        else:
            self.silent_s += min(passed_s, self._interval_s + LATE_S)

    def resume(self, now: float, silent_s: float) -> None:
        """Continue from a silence that was observed before."""
        self._counted_to = now
        self.silent_s = silent_s

    def reset(self, now: float) -> None:
        """Restart the measurement, because the peer has answered or no probe could be sent."""
        self._counted_to = now
        self.silent_s = 0.0


DELAY_WINDOW_S = 30.0
"""A late answer is remembered for this time, and for at most twice as long."""
DELAY_FACTOR = 4.0
"""A peer is silent only after this many times its latest answer."""
DELAY_LIMITS_MAX = 3.0
"""Late answers lengthen a limit to at most this many times its length."""


class AnswerDelays:
    """The latest answer of one peer in the last time: the greatest delay in this window and in the one before."""

    def __init__(self) -> None:
        self._began = float("-inf")
        self._present_s = 0.0
        self._past_s = 0.0

    def answered(self, now: float, delay_s: float) -> None:
        """The peer has answered after a delay."""
        self._advance(now)
        self._present_s = max(self._present_s, delay_s)

    def limit_s(self, now: float, limit_s: float) -> float:
        """The limit of silence for this peer, where others have `limit_s`."""
        self._advance(now)
        return max(limit_s, min(DELAY_FACTOR * max(self._present_s, self._past_s), DELAY_LIMITS_MAX * limit_s))

    def _advance(self, now: float) -> None:
        passed_s = now - self._began
        if passed_s >= DELAY_WINDOW_S:
            self._past_s = self._present_s if passed_s < 2 * DELAY_WINDOW_S else 0.0
            self._began, self._present_s = now, 0.0


class SuspicionTimeout:
    """The limit for the next silence. It grows with each conclusion in a short time, because take-overs would keep an overloaded cluster
    overloaded.

    Args:
        limit_s: the configured limit of silence.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._concluded: deque[float] = deque(maxlen=FLAP_FREE + FLAP_FACTOR_MAX)

    def limit_s(self, now: float) -> float:
        """The silence, in seconds, that the next conclusion needs."""
        while self._concluded and self._concluded[0] < now - FLAP_WINDOW_S:
            self._concluded.popleft()
        excess = max(0, len(self._concluded) + 1 - FLAP_FREE)
        return self._limit_s * min(1 << excess, FLAP_FACTOR_MAX)

    def conclude(self, now: float) -> None:
        """Count a conclusion: a peer was found silent."""
        self._concluded.append(now)

    def retract(self, at: float) -> None:
        """The conclusion of that time was not acted upon, so that no take-over followed. Several waiters may say so."""
        if at in self._concluded:
            self._concluded.remove(at)
