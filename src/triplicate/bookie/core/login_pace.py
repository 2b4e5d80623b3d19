"""How fast strangers are served: TLS handshakes per second, and the delay of logins after failed ones. Pure."""

from __future__ import annotations

FIRST_DELAY_S = 0.05
"""Delay after the first failed login of an address, in seconds. It doubles with each further one."""
DELAY_MAX_S = 4.0
FORGIVEN_S = 60.0
"""Time in which an address is forgiven one failed login, in seconds."""
ADDRESSES_MAX = 10_000
"""Addresses that are remembered. Beyond it the one whose latest failure is the oldest is forgotten."""


class FailedLogins:
    """Failed logins by address, and the delay that follows from them.

    The outcome of a login is delayed, be it good or bad: so a guess costs time, and a right password is never refused.
    """

    def __init__(self, delay_max_s: float = DELAY_MAX_S) -> None:
        self._delay_max_s = delay_max_s
        self._failures: dict[str, tuple[float, float]] = {}
        """Address → (failures, time at which this was their number), the latest failure last."""

    def __len__(self) -> int:
        return len(self._failures)

    def delay_s(self, address: str, now: float) -> float:
        """The delay of the outcome of a login from this address."""
        failures = self._at(address, now)
        return min(self._delay_max_s, FIRST_DELAY_S * 2.0 ** min(failures - 1.0, 30.0)) if failures > 0 else 0.0

    def count(self, address: str, now: float) -> None:
        """A login from this address failed."""
        failures = self._at(address, now) + 1.0
        self._failures.pop(address, None)
        self._failures[address] = failures, now
        if len(self._failures) > ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]

    def _at(self, address: str, now: float) -> float:
        failures, since = self._failures.get(address, (0.0, now))
        return max(0.0, failures - (now - since) / FORGIVEN_S)


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
