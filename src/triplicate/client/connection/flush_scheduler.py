"""One write per connection and tick of the event loop, for all ledgers of a client together.

At the end of a tick each source with entries to send is called once, and then each connection writes once. However many ledgers a client
writes, a tick costs one callback of the loop, one look at the clock, and one write per connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from triplicate.runtime import Clock


class AddSource(Protocol):
    """Something that enqueues adds, one for each ledger."""

    def send_enqueued(self, now: float) -> None:
        """Give what was enqueued to connections; `now` is seconds of the monotonic clock. Harmless when nothing is left."""


class BufferedChannel(Protocol):
    """A connection that buffers what a tick sends."""

    def flush(self) -> None:
        """Write the buffer to the connection. Harmless when it is empty."""


class AddChannel(BufferedChannel, Protocol):
    """A connection for adds."""

    def write_adds(self, parts: Sequence[bytes], adds: int, size_bytes: int) -> bool:
        """Write this many frames of adds in this tick; False when the channel is now full (they are sent all the same)."""


class FullChannelListener(Protocol):
    """The adds of one ledger."""

    def pause_adds(self, channel: AddChannel) -> None:
        """The channel accepted the adds, and is full: give it no more for now."""


class Multicast:
    """Several channels that receive the same adds, of any ledgers: one list of a tick's frames serves all of them."""

    __slots__ = ("__weakref__", "_channels", "_scheduler", "adds", "listeners", "parts", "size_bytes")

    def __init__(self, scheduler: FlushScheduler, channels: tuple[AddChannel, ...]) -> None:
        self._scheduler = scheduler
        self._channels = channels
        self.parts: list[bytes] = []
        self.listeners: list[FullChannelListener] = []
        self.adds = 0
        self.size_bytes = 0

    def send(self, listener: FullChannelListener, frames: bytes, adds: int, size_bytes: int) -> None:
        """Send whole frames of `adds` adds when all sources of this tick were called."""
        if not self.parts:
            self._scheduler.multicasts.append(self)
        self.parts.append(frames)
        self.listeners.append(listener)
        self.adds += adds
        self.size_bytes += size_bytes

    def deliver(self) -> None:
        """Write everything to each channel (FlushScheduler)."""
        parts, self.parts = self.parts, []
        listeners, self.listeners = self.listeners, []
        adds, self.adds = self.adds, 0
        size_bytes, self.size_bytes = self.size_bytes, 0
        for channel in self._channels:
            if not channel.write_adds(parts, adds, size_bytes):
                for listener in listeners:
                    listener.pause_adds(channel)


class FlushScheduler:
    """Belongs to the connections of one pool.

    Attributes:
        received_at: arrival of the chunk of answers that is being processed, in seconds of the monotonic clock; 0 outside of that.
        multicasts: those with something to deliver.
    """

    __slots__ = ("_channels", "_clock", "_is_due", "_joined", "_known_multicasts", "_parts", "_sources", "multicasts", "received_at")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.received_at = 0.0
        self._sources: list[AddSource] = []
        self._channels: list[BufferedChannel] = []
        self._is_due = False
        self._known_multicasts: WeakValueDictionary[tuple[AddChannel, ...], Multicast] = WeakValueDictionary()
        self.multicasts: list[Multicast] = []
        self._parts: list[bytes] = []
        self._joined = b""

    def schedule(self, source: AddSource) -> None:
        """Call the source at the end of this tick; sources are called in the order of their scheduling."""
        self._sources.append(source)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._run)

    def schedule_flush(self, channel: BufferedChannel) -> None:
        """Flush the channel at the end of this tick, when all sources were called."""
        self._channels.append(channel)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._run)

    def multicast(self, channels: tuple[AddChannel, ...]) -> Multicast:
        """The multicast to these channels in this order, shared by all callers. It is forgotten with its last user."""
        multicast = self._known_multicasts.get(channels)
        if multicast is None:
            multicast = self._known_multicasts[channels] = Multicast(self, channels)
        return multicast

    def deliver(self) -> None:
        """Deliver what was sent by multicast, before all sources of this tick were called."""
        while self.multicasts:
            self.multicasts.pop().deliver()

    def join(self, parts: list[bytes]) -> bytes:
        """The parts in one piece, which is reused when the next connection of this tick has the same parts.

        The connections of an ensemble do. Beside the work this saves memory: what is written stays in use until the end of the tick.
        """
        if parts != self._parts:
            self._parts, self._joined = parts, b"".join(parts)
        return self._joined

    def _run(self) -> None:
        sources, self._sources = iter(self._sources), []
        channels: Iterator[BufferedChannel] = iter(())
        try:
            now = self._clock.monotonic()
            for source in sources:
                source.send_enqueued(now)
            self.deliver()
            channels, self._channels = iter(self._channels), []
            for channel in channels:
                channel.flush()
        finally:
            # Sources or channels are left only if one of them failed. The next callback serves the others.
            self._sources += sources
            self._channels += channels
            self._parts, self._joined = [], b""
            self._is_due = bool(self._sources or self.multicasts or self._channels)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._run)
