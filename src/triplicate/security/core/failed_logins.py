"""Failed logins by address, and the delays that follow from them. Pure.

Each address has an account of failures. One is forgiven after a time, so that a guesser has few attempts in an hour, and a person who
mistyped waits for a moment. A login that succeeds forgives none: the owner of one password must not guess others without limit.

The doors differ in what follows. A bookie delays the outcome of each login, be it good or bad, and never refuses a right password: a
bookie's clients are services, and one of them must not lock out the others of its machine. A database node delays the answer to a failed
login only, and refuses an address at the maximum.
"""

from __future__ import annotations

from collections import OrderedDict

from triplicate.security.core.address_key import address_key

ADDRESSES_MAX = 10_000
"""Addresses that are remembered; beyond it the one whose last failure is the oldest is forgotten."""


class FailedLogins:
    """The accounts of all addresses, by `address_key`.

    Args:
        forgiven_s: one failure is forgiven after this time, seconds.
        maximum: the most failures that an account holds; 0 for no limit.
    """

    def __init__(self, forgiven_s: float, maximum: int = 0) -> None:
        self._forgiven_s = forgiven_s
        self._maximum = maximum
        self._accounts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Maps an address to (failures, the monotonic time of this number). The last failure comes last."""

    def __len__(self) -> int:
        return len(self._accounts)

    def failures(self, address: str, now_s: float) -> float:
        """The failures that are not forgiven yet; a part of one counts for the part of its time that is left."""
        return self._failures(address_key(address), now_s)

    def wait_s(self, address: str, now_s: float) -> float:
        """Seconds until the account is below its maximum; 0 if it is, or has none."""
        excess = self.failures(address, now_s) - (self._maximum - 1)
        return excess * self._forgiven_s if self._maximum and excess > 0 else 0.0

    def count(self, address: str, now_s: float) -> float:
        """Count a failure. Returns the failures that are not forgiven, with this one."""
        key = address_key(address)
        # More failures than the maximum come from logins that ran at the same time. They do not lengthen the wait.
        failures = self._failures(key, now_s) + 1
        if self._maximum:
            failures = min(failures, float(self._maximum))
        self._accounts[key] = failures, now_s
        self._accounts.move_to_end(key)
        if len(self._accounts) > ADDRESSES_MAX:
            self._accounts.popitem(last=False)
        return failures

    def _failures(self, key: str, now_s: float) -> float:
        failures, counted_s = self._accounts.get(key, (0.0, now_s))
        return max(0.0, failures - (now_s - counted_s) / self._forgiven_s)


def doubling_delay_s(failures: float, first_s: float, longest_s: float) -> float:
    """The delay after this number of failures, seconds: `first_s` for one, twice as long for each further one, at most `longest_s`."""
    return min(longest_s, first_s * 2.0 ** min(failures - 1.0, 30.0)) if failures > 0 else 0.0
