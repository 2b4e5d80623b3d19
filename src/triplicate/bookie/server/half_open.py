"""Connections that are not admitted yet, in limited number: in total, and for each address.

Beyond a limit the oldest is closed, not the newest: an honest client needs milliseconds, so it passes even while somebody opens
connections and leaves them idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Guest(Protocol):
    """A connection that is not admitted."""

    @property
    def address(self) -> str:
        """The host that it comes from."""

    def refuse(self, reason: str) -> None:
        """Count, trace and abort it."""


class HalfOpen:
    """See the module's text.

    Args:
        total: maximum of all. per_address: maximum of one address.
    """

    def __init__(self, total: int, per_address: int) -> None:
        self._total = total
        self._per_address = per_address
        self._guests: dict[int, Guest] = {}
        self._of_address: dict[str, dict[int, Guest]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __iter__(self) -> Iterator[Guest]:
        return iter(list(self._guests.values()))

    def join(self, guest: Guest) -> Guest | None:
        """A connection was opened. Returns the one to drop for it, which is counted no more."""
        self._guests[id(guest)] = guest
        of_address = self._of_address.setdefault(guest.address, {})
        of_address[id(guest)] = guest
        if len(of_address) > self._per_address:
            oldest = next(iter(of_address.values()))
        elif len(self._guests) > self._total:
            oldest = next(iter(self._guests.values()))
        else:
            return None
        self.leave(oldest)
        return oldest

    def leave(self, guest: Guest) -> None:
        """The connection is admitted, or gone. Idempotent."""
        if self._guests.pop(id(guest), None) is None:
            return
        of_address = self._of_address[guest.address]
        del of_address[id(guest)]
        if not of_address:
            del self._of_address[guest.address]
