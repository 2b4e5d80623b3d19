"""Failed logins by address, and the time that an address has to wait because of them. Pure.

Each address has an account of failures. One is forgiven after a time, so that a guesser has few attempts in an hour, and a person who
mistyped waits for a moment. A login that succeeds forgives none: the owner of one password must not guess others without limit.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

ADDRESSES_MAX = 10_000
"""Addresses that are remembered; beyond it the one whose last failure is the oldest is forgotten."""
DELAY_FIRST_S = 0.1
DELAY_LONGEST_S = 3.0
"""Bounds of the delay before the answer to a failed login, in seconds. It doubles with each failure."""


class FailedLogins:
    """The accounts of all addresses.

    Args:
        maximum: failures after which an address is refused until one of them is forgiven; 0 for no limit.
        forgiven_s: one failure is forgiven after this time, seconds.
    """

    def __init__(self, maximum: int, forgiven_s: float) -> None:
        self._maximum = maximum
        self._forgiven_s = forgiven_s
        self._accounts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Maps an address to (failures, the monotonic time of this number). The last failure comes last."""

    def wait_s(self, address: str, now_s: float) -> float:
        """Seconds until a login from the address may be tried; 0 for at once."""
        excess = self._failures(address_key(address), now_s) - (self._maximum - 1)
        return excess * self._forgiven_s if self._maximum and excess > 0 else 0.0

    def count(self, address: str, now_s: float) -> float:
        """Count a failure. Returns the delay before its answer, in seconds."""
        key = address_key(address)
        # More failures than the maximum come from logins that ran at the same time. They do not lengthen the wait.
        failures = self._failures(key, now_s) + 1
        if self._maximum:
            failures = min(failures, float(self._maximum))
        self._accounts[key] = failures, now_s
        self._accounts.move_to_end(key)
        if len(self._accounts) > ADDRESSES_MAX:
            self._accounts.popitem(last=False)
        return min(DELAY_FIRST_S * 2 ** min(failures - 1, 30), DELAY_LONGEST_S)

    def _failures(self, key: str, now_s: float) -> float:
        """The failures that are not forgiven yet; a part of one counts for the part of its time that is left."""
        failures, counted_s = self._accounts.get(key, (0.0, now_s))
        return max(0.0, failures - (now_s - counted_s) / self._forgiven_s)


def address_key(address: str) -> str:
    """The key of an address in tables: the /64 network of an IPv6 address, of which one machine has every address."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # A simulated machine has a name.
    if isinstance(known, ipaddress.IPv4Address):
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))
