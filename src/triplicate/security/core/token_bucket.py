"""A limit to the rate of events, such as TLS handshakes. Pure."""

from __future__ import annotations


class TokenBucket:
    """A limit to a rate: each event takes a token, `per_s` of them come each second, and as many may be saved."""

    def __init__(self, per_s: int, now: float) -> None:
        self._per_s = per_s
        self._tokens = float(per_s)
        self._at = now

    def wait_s(self, now: float) -> float:
        """Take a token. Returns the seconds until the event may happen; those who wait are served in their order."""
        self._tokens = min(float(self._per_s), self._tokens + (now - self._at) * self._per_s) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._per_s)

    def give_back(self) -> None:
        """The event will not happen."""
        self._tokens += 1.0
