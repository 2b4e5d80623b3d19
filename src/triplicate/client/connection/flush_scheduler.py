"""What goes out in one turn of the loop: each ledger with something to send is asked once, and then each connection writes once.

However many ledgers a client writes, a turn costs one callback of the loop, one look at the clock, and one write per connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from triplicate.runtime import Clock


class AddSource(Protocol):
    """Who has put something on its way."""

    def send_put(self, now: float) -> None:
        """Hand what was put to connections; `now` is what the clock says. Harmless when there is nothing any more."""


class BufferedChannel(Protocol):
    """Who was handed something."""

    def flush(self) -> None:
        """Write it. Harmless when there is nothing any more."""


class AddChannel(BufferedChannel, Protocol):
    """Who takes adds."""

    def take_adds(self, parts: Sequence[bytes], adds: int, size_bytes: int) -> bool:
        """Write so many frames of adds in this turn; False when the channel is now full (they are sent all the same)."""


class FullChannelListener(Protocol):
    """Whose adds go one way."""

    def channel_is_full(self, channel: AddChannel) -> None:
        """It took the adds, and shall be given no more for now."""


class Multicast:
    """Several channels that are all sent the same: one list of what a turn sends there, however many ledgers it is from."""

    __slots__ = ("__weakref__", "_channels", "_turn", "adds", "parts", "sendings", "size_bytes")

    def __init__(self, turn: FlushScheduler, channels: tuple[AddChannel, ...]) -> None:
        self._turn = turn
        self._channels = channels
        self.parts: list[bytes] = []
        self.sendings: list[FullChannelListener] = []
        self.adds = 0
        self.size_bytes = 0

    def send(self, sending: FullChannelListener, frames: bytes, flight: tuple[int, int, int, float]) -> None:
        """Send whole frames when all senders of this turn were asked; see `channel.Flight`."""
        if not self.parts:
            self._turn.routes.append(self)
        self.parts.append(frames)
        self.sendings.append(sending)
        self.adds += flight[1]
        self.size_bytes += flight[2]

    def hand_over(self) -> None:
        """For `Turn.hand_over`."""
        parts, self.parts = self.parts, []
        sendings, self.sendings = self.sendings, []
        adds, self.adds = self.adds, 0
        size_bytes, self.size_bytes = self.size_bytes, 0
        for channel in self._channels:
            if not channel.take_adds(parts, adds, size_bytes):
                for sending in sendings:
                    sending.channel_is_full(channel)


class FlushScheduler:
    """Belongs to the connections of one pool."""

    __slots__ = ("_clock", "_connections", "_is_due", "_joined", "_known_routes", "_parts", "_senders", "received_at", "routes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.received_at = 0.0
        """When the chunk of answers came that is worked through now; 0 outside of that."""
        self._senders: list[AddSource] = []
        self._connections: list[BufferedChannel] = []
        self._is_due = False
        self._known_routes: WeakValueDictionary[tuple[AddChannel, ...], Multicast] = WeakValueDictionary()
        self.routes: list[Multicast] = []
        """Those with something to hand over."""
        self._parts: list[bytes] = []
        self._joined = b""

    def ask(self, sender: AddSource) -> None:
        """Ask it in this turn; senders are asked in the order in which they came."""
        self._senders.append(sender)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go)

    def write(self, connection: BufferedChannel) -> None:
        """Have it write in this turn, when all senders were asked."""
        self._connections.append(connection)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go)

    def route(self, channels: tuple[AddChannel, ...]) -> Multicast:
        """The way to these channels, one for all who ask for the same in the same order. It is forgotten with the last who keeps it."""
        route = self._known_routes.get(channels)
        if route is None:
            route = self._known_routes[channels] = Multicast(self, channels)
        return route

    def hand_over(self) -> None:
        """Give the connections what was sent by routes, where somebody cannot wait until all senders were asked."""
        while self.routes:
            self.routes.pop().hand_over()

    def joined(self, parts: list[bytes]) -> bytes:
        """The parts as one; at once where another connection of this turn was handed the same, as the bookies of an ensemble are.

        Beside the work this saves memory: what is written stays in use until the end of the loop's turn.
        """
        if parts != self._parts:
            self._parts, self._joined = parts, b"".join(parts)
        return self._joined

    def _go(self) -> None:
        senders, self._senders = iter(self._senders), []
        connections: Iterator[BufferedChannel] = iter(())
        try:
            now = self._clock.monotonic()
            for sender in senders:
                sender.send_put(now)
            self.hand_over()
            connections, self._connections = iter(self._connections), []
            for connection in connections:
                connection.flush()
        finally:
            # Something is left only where one of them failed, which is nobody else's fault.
            self._senders += senders
            self._connections += connections
            self._parts, self._joined = [], b""
            self._is_due = bool(self._senders or self.routes or self._connections)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._go)
