"""One simulated connection: two ends, and between them two directions that carry bytes with delay.

Each direction holds segments: the bytes written in one instant, and their time of arrival. A break cuts a direction at a random byte, then
notifies the receiver. Every call of an end on its protocol runs in the context of that end's node, so a dead node hears nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from triplicate.sim.virtual_loop import Life, VirtualLoop, context_of

HIGH_WATER_BYTES = 64 * 1024
"""asyncio's own default for write buffers. The low mark is a quarter of it."""


@dataclass(frozen=True)
class NetworkTiming:
    """One-way delays. Each ordered pair of nodes draws its own factor once, so that some links are slow for a whole run."""

    delay_low_s: float = 0.0001
    delay_mean_s: float = 0.0006
    link_factor_high: float = 6.0
    split_rate: float = 0.05
    """Share of deliveries that are cut in two at a random byte."""
    connect_timeout_s: float = 20.0
    """Time after which the operating system gives up a connect to a silent host."""
    buffer_low_bytes: int = 16 * 1024
    buffer_high_bytes: int = 256 * 1024
    """Bounds of a connection's capacity on the wire, beyond which the sender's own buffer fills. Drawn for each connection."""


class TransportNetwork(Protocol):
    """The part of `SimulatedNetwork` that its connections use."""

    loop: VirtualLoop
    timing: NetworkTiming
    torn: int
    tears: dict[tuple[str, str | None], int]
    blocked: dict[tuple[str, str], int]

    def delay(self, link: tuple[str, str], rng: random.Random) -> float: ...

    def written(self, target: str, arrives_at: float) -> None: ...

    def delivered(self, number: int, target: str, data: bytes) -> None: ...

    def consume_tear(self, source: str, target: str) -> bool: ...

    def tear(self, connection: SimulatedConnection) -> None: ...

    def remove(self, connection: SimulatedConnection) -> None: ...


class _Segment:
    """Bytes written at one instant. `arrives_at` never decreases along a direction."""

    __slots__ = ("arrives_at", "chunks", "size", "written_at")

    def __init__(self, written_at: float, arrives_at: float, data: bytes) -> None:
        self.written_at = written_at
        self.arrives_at = arrives_at
        self.chunks = [data]
        self.size = len(data)


class Direction:
    """Bytes in flight from one end to the other."""

    __slots__ = (
        "_connection",
        "_end",
        "_end_at",
        "_loop",
        "_network",
        "_severed",
        "_tearing",
        "_timer",
        "link",
        "segments",
        "source",
        "target",
        "undelivered",
    )

    def __init__(self, connection: SimulatedConnection, source: SimulatedTransport, target: SimulatedTransport) -> None:
        self.source = source
        self.target = target
        self.link = (source.life.name, target.life.name)
        self.segments: deque[_Segment] = deque()
        self.undelivered = 0
        self._connection = connection
        self._network = connection.network
        self._loop = connection.network.loop
        self._timer: asyncio.TimerHandle | None = None
        self._end: str | None = None
        """How the direction ends once its segments are delivered: 'eof' or 'reset'."""
        self._end_at = 0.0
        self._tearing = 0
        """Size of the last write, if the network is about to tear it."""
        self._severed = False
        """Cut: later writes, by a sender that has not yet noticed, are discarded."""

    def write(self, data: bytes) -> None:
        if self._severed:
            return
        now = self._loop.time()
        last = self.segments[-1] if self.segments else None
        if last is not None and last.written_at == now:
            last.chunks.append(data)
            last.size += len(data)
        else:
            arrives_at = self._arrival(now)
            self.segments.append(_Segment(now, arrives_at, data))
            self._network.written(self.link[1], arrives_at)
        self.undelivered += len(data)
        if self._timer is None:
            self.schedule()
        if self._network.tears and len(data) > 1 and self._network.consume_tear(*self.link):
            # Deferred: the writing end must not lose its connection inside its own call.
            self._tearing = len(data)
            self._loop.call_soon(self._network.tear, self._connection, context=context_of(None))

    def finish(self) -> None:
        """Send end of file after the bytes written so far."""
        if self._end is None and not self._severed:
            self._end = "eof"
            self._end_at = self._arrival(self._loop.time())
            self.schedule()

    def cut(self, *, notify: bool, inside: bool = False) -> None:
        """Lose a tail of the bytes in flight, from a random byte on. Then notify the receiver by a reset, or not at all.

        Args:
            inside: if a write of this direction is to be torn, cut inside that one.
        """
        keep = self._connection.rng.randrange(self.undelivered + 1) if self.undelivered else 0
        if inside and 1 < self._tearing <= self.undelivered:
            keep = self.undelivered - self._connection.rng.randrange(1, self._tearing)
        if self.target.is_holding():
            keep = 0
        self._network.torn += self._is_inside_write(keep)
        self._truncate(keep)
        self._severed = True
        self._end = "reset" if notify else None
        self._end_at = self._arrival(self._loop.time())
        if notify:
            self.schedule()

    def drop(self) -> None:
        """Lose all bytes in flight, without notice."""
        self._truncate(0)
        self._end = None

    def schedule(self) -> None:
        """Arm the timer for the next arrival, unless nothing is in flight, the reader is paused, or the direction is blocked."""
        if self._timer is not None or not (self.segments or self._end is not None) or self._is_stopped():
            return
        when = self.segments[0].arrives_at if self.segments else self._end_at
        self._timer = self._loop.call_at(max(when, self._loop.time()), self._deliver, context=self.target.context)

    def _is_stopped(self) -> bool:
        """Whether nothing may arrive: the end is gone, the reader is paused (a reset still arrives), or the direction is blocked."""
        target = self.target
        if target.gone or (target.is_holding() and (self.segments or self._end != "reset")):
            return True
        blocked = self._network.blocked
        return bool(blocked) and self.link in blocked

    def _deliver(self) -> None:
        self._timer = None
        if self._is_stopped():
            return
        if not self.segments:
            self._deliver_end()
            return
        data = self._pop_arrived(self._loop.time())
        if data:
            self._network.delivered(self._connection.number, self.link[1], data)
            self.target.receive(data)
            self.source.drained()
        self.schedule()

    def _deliver_end(self) -> None:
        end, self._end = self._end, None
        if end == "reset":
            self.target.lose(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))
        elif end == "eof":
            self.target.receive_eof()

    def _pop_arrived(self, now: float) -> bytes:
        """Remove and return the bytes that have arrived by now; sometimes a part of them only, the rest a little later."""
        segments = self.segments
        chunks: list[bytes] = []
        while segments and segments[0].arrives_at <= now:
            chunks += segments.popleft().chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        rng = self._connection.rng
        if len(data) > 1 and rng.random() < self._network.timing.split_rate:
            cut = rng.randrange(1, len(data))
            rest = _Segment(-1.0, now + self._network.timing.delay_low_s * rng.random(), data[cut:])
            self.segments.appendleft(rest)
            data = data[:cut]
        self.undelivered -= len(data)
        return data

    def _arrival(self, now: float) -> float:
        when = now + self._network.delay(self.link, self._connection.rng)
        return max(when, self.segments[-1].arrives_at) if self.segments else when

    def _is_inside_write(self, keep: int) -> bool:
        """Whether a cut after `keep` bytes leaves the receiver with a part of one write."""
        end = 0
        for segment in self.segments:
            # A segment whose beginning was delivered before: even a cut at its start leaves its write torn.
            if keep == end:
                return segment.written_at < 0.0
            for chunk in segment.chunks:
                if end < keep < end + len(chunk):
                    return True
                end += len(chunk)
        return False

    def _truncate(self, keep: int) -> None:
        kept: deque[_Segment] = deque()
        left = keep
        for segment in self.segments:
            if left <= 0:
                break
            if segment.size > left:
                segment = _Segment(segment.written_at, segment.arrives_at, b"".join(segment.chunks)[:left])
            left -= segment.size
            kept.append(segment)
        self.segments = kept
        self.undelivered = sum(segment.size for segment in kept)


def delivers_to_nobody(callback: Callable[..., object]) -> bool:
    """Whether a timer's callback delivers bytes to an end that has been closed. They may be in flight for longer than a node runs."""
    direction = getattr(callback, "__self__", None)
    return isinstance(direction, Direction) and direction.target.lost


class SimulatedConnection:
    """Two ends of one connection, which the network joins right after construction."""

    client: SimulatedTransport
    server: SimulatedTransport

    def __init__(self, network: TransportNetwork, number: int, rng: random.Random, capacity: int) -> None:
        self.network = network
        self.number = number
        self.rng = rng
        self.capacity = capacity

    def join(self, client: SimulatedTransport, server: SimulatedTransport) -> None:
        """Set the two ends and the directions between them."""
        self.client, self.server = client, server
        client.outgoing = server.incoming = Direction(self, client, server)
        server.outgoing = client.incoming = Direction(self, server, client)

    def peer(self, end: SimulatedTransport) -> SimulatedTransport:
        """The other end."""
        return self.server if end is self.client else self.client

    def touches(self, name: str) -> bool:
        """Whether a node is one of the two ends."""
        return name in (self.client.life.name, self.server.life.name)

    def wake(self, source: str, target: str) -> None:
        """Resume deliveries from one node to another after an unblock."""
        for end in (self.client, self.server):
            if end.outgoing.link == (source, target):
                end.outgoing.schedule()

    def break_off(self, *, inside: bool = False) -> bool:
        """Cut both directions (inside the write that is to be torn). False when nothing was left to break."""
        if self.client.lost or self.server.lost:
            return False
        self.client.outgoing.cut(notify=True, inside=inside)
        self.server.outgoing.cut(notify=True, inside=inside)
        return True

    def mark_dead(self, life: Life, *, silent: bool) -> None:
        """A node's life is over: its end calls nothing any more."""
        for end in (self.client, self.server):
            if end.life is life and not end.gone:
                end.gone = end.lost = True
                end.outgoing.cut(notify=not silent)
                end.incoming.drop()
        self.remove_if_over()

    def reset_by_new_host(self, name: str) -> None:
        """Reset the peer of a dead end: it sends to a machine that does not know the connection."""
        for end in (self.client, self.server):
            if end.gone and end.life.name == name and not self.peer(end).lost:
                end.outgoing.cut(notify=True)

    def remove_if_over(self) -> None:
        """Leave the network's table once neither end is in use."""
        if self.client.lost and self.server.lost:
            self.network.remove(self)


class SimulatedTransport(asyncio.Transport):
    """One end: all of asyncio's transport interface that a protocol may use. The directions are set when it is joined to the other end."""

    outgoing: Direction
    incoming: Direction

    def __init__(
        self,
        connection: SimulatedConnection,
        life: Life,
        context: contextvars.Context,
        own_address: tuple[str, int],
        peer_address: tuple[str, int],
    ) -> None:
        super().__init__({"sockname": own_address, "peername": peer_address})
        self.connection = connection
        self.life = life
        self.context = context
        self.own_address = own_address
        self.paused = True
        """Whether reading is paused. True until the protocol is set, so that early bytes wait for it."""
        self.lost = False
        """`connection_lost` was called or is about to be."""
        self.gone = False
        """The node died with it."""
        self._protocol: asyncio.Protocol | None = None
        self._closing = False
        self._eof_sent = False
        self._writing_paused = False
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4

    def start(self, protocol: asyncio.Protocol) -> None:
        """Set the protocol and start reading."""
        self._protocol = protocol
        self.paused = False
        protocol.connection_made(self)
        if not self.paused:
            self.incoming.schedule()

    # asyncio.Transport.

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.life.check()
        if self._closing or self._eof_sent or not data:
            return
        outgoing = self.outgoing
        if outgoing.target.gone:
            # Nothing receives the bytes. They count as unsent for ever, as against a silent host.
            outgoing.undelivered += len(data)
        else:
            outgoing.write(bytes(data))
        if not self._writing_paused and self.get_write_buffer_size() > self._high:
            self._writing_paused = True
            self.get_protocol().pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._closing and not self._eof_sent:
            self._eof_sent = True
            self.outgoing.finish()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        """Bytes beyond the capacity of the wire."""
        return max(0, self.outgoing.undelivered - self.connection.capacity)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must be at least low ({low}) and low at least 0")
        self._high, self._low = high, low

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        if self.paused and not self._closing:
            self.paused = False
            self.incoming.schedule()

    def is_reading(self) -> bool:
        return not self.paused and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._eof_sent:
                self.outgoing.finish()
            if self.get_write_buffer_size() == 0:
                self.lose(None)
            self.incoming.schedule()

    def abort(self) -> None:
        if not self.lost:
            self._closing = True
            self.outgoing.cut(notify=True)
            self.lose(None)

    def get_protocol(self) -> asyncio.Protocol:
        assert self._protocol is not None, "the connection was opened"
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    # For the directions.

    def is_holding(self) -> bool:
        """Whether bytes must wait outside because the reader is paused. A closed end receives and discards them."""
        return self.paused and not self._closing

    def receive(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._closing or self.lost:
            return
        try:
            self.get_protocol().data_received(data)
        except Exception:
            # asyncio's own transports do the same: the error is reported and the connection ends.
            self.abort()
            raise

    def receive_eof(self) -> None:
        """The peer will send no more."""
        if not self._closing and not self.lost and not self.get_protocol().eof_received():
            self.close()

    def drained(self) -> None:
        """Some of this end's bytes were delivered. Called in the peer's context."""
        if self.lost or not (self._writing_paused or self._closing):
            return
        size = self.get_write_buffer_size()
        if self._writing_paused and size <= self._low:
            self._writing_paused = False
            self.connection.network.loop.call_soon(self.get_protocol().resume_writing, context=self.context)
        if self._closing and size == 0:
            self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """End the connection at this end. Its protocol is notified in the next turn of its own node."""
        if self.lost:
            return
        self.lost = True
        self._closing = True
        if self._protocol is not None:
            self.connection.network.loop.call_soon(self._protocol.connection_lost, error, context=self.context)
        self.connection.remove_if_over()
