"""What goes out in one turn of the loop: each ledger with something to send is asked once, and then each connection writes once.

However many ledgers a client writes, a turn costs one callback of the loop, one look at the clock, and one write per connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Protocol

from triplicate.runtime import Clock


class Sender(Protocol):
    """Who has put something on its way."""

    def send_put(self, now: float) -> None:
        """Hand what was put to connections; `now` is what the clock says. Harmless when there is nothing any more."""


class Connection(Protocol):
    """Who was handed something."""

    def flush(self) -> None:
        """Write it. Harmless when there is nothing any more."""


class Turn:
    """Belongs to the connections of one pool."""

    __slots__ = ("_clock", "_connections", "_is_due", "_joined", "_parts", "_senders")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._senders: list[Sender] = []
        self._connections: list[Connection] = []
        self._is_due = False
        self._parts: list[bytes] = []
        self._joined = b""

    def ask(self, sender: Sender) -> None:
        """Ask it in this turn; senders are asked in the order in which they came."""
        self._senders.append(sender)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go)

    def write(self, connection: Connection) -> None:
        """Have it write in this turn, when all senders were asked."""
        self._connections.append(connection)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go)

    def joined(self, parts: list[bytes]) -> bytes:
        """The parts as one; at once where another connection of this turn was handed the same, as the bookies of an ensemble are.

        Beside the work this saves memory: what is written stays in use until the end of the loop's turn.
        """
        if parts != self._parts:
            self._parts, self._joined = parts, b"".join(parts)
        return self._joined

    def _go(self) -> None:
        senders, self._senders = iter(self._senders), []
        connections: Iterator[Connection] = iter(())
        try:
            now = self._clock.monotonic()
            for sender in senders:
                sender.send_put(now)
            connections, self._connections = iter(self._connections), []
            for connection in connections:
                connection.flush()
        finally:
            # Something is left only where one of them failed, which is nobody else's fault.
            self._senders += senders
            self._connections += connections
            self._parts, self._joined = [], b""
            self._is_due = bool(self._senders or self._connections)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._go)
