"""The standing of one connection at the door: its doorkeeper until it is admitted, then its owner."""

from __future__ import annotations

from typing import Protocol

from triplicate.bookie.server.door import ANYBODY, Admitted, Door, Principal
from triplicate.bookie.server.doorkeeper import DoorGuest, Doorkeeper


class Member(Admitted, DoorGuest, Protocol):
    """The connection."""


class Standing:
    """See the module's text."""

    def __init__(self, door: Door, connection: Member) -> None:
        self.keeper = None if door.policy.is_open else Doorkeeper(connection, door)
        """None once the connection is admitted."""
        self._door = door
        self._connection = connection
        self._principal = ANYBODY
        self._lacked: dict[str, None] = {}
        """Rights whose lack was traced."""

    def begin(self) -> None:
        """The connection is open."""
        if self.keeper is not None:
            self.keeper.begin()

    def admit(self, principal: Principal) -> None:
        """The connection is admitted as this principal."""
        self.keeper = None
        self._principal = principal
        self._door.admit(self._connection, principal)

    def lack_right(self, right: str, request: str, count: int) -> None:
        """Requests are refused for want of a right. Traced once per connection and right."""
        self._door.lack_right(right, count)
        if right not in self._lacked:
            self._lacked[right] = None
            self._door.trace_lack(right, self._connection.peer, self._principal.name, request)

    def end(self) -> None:
        """The connection is gone. Idempotent."""
        if self.keeper is not None:
            self.keeper.end()
        self._door.forget(self._connection)
