"""One connection to one bookie: it sends requests and matches answers; for adds, no object is made per entry.

A connection speaks one version of the protocol from its first byte on; `connection.exchange` holds the differences. Over version 2 an
answer is matched by operation, ledger and entry, and nothing in it distinguishes the answer to a fencing read from that to a plain read.
So requests that fence never share a connection with those that do not: recovery has a pool of its own. Adds are matched by ledger and
entry over both versions. Source: BookKeeper `PerChannelBookieClient`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from triplicate.client.connection.connector import BookieConnector, ChannelResources
from triplicate.client.connection.exchange import Answer, Callback, Exchange, Gathered, PendingRequest, V2Exchange, V3Exchange, describe
from triplicate.client.connection.flush_scheduler import FlushScheduler
from triplicate.client.connection.response_errors import (
    EXPLICIT_NEGATIVES,
    bookie_unavailable,
    connection_broken,
    owes_too_much,
    request_timeout,
)
from triplicate.client.connection.sweep_timer import SweepTimer
from triplicate.config import ClientSettings
from triplicate.errors import BookieError, ProtocolError
from triplicate.wire import (
    BOOKIE_FRAME_BYTES,
    AddResponse,
    FrameBuffer,
    ReadRequest,
    ReadResponse,
    Request,
    Status,
    next_frame,
    v3,
)

SWEEPS_PER_TIMEOUT = 10
OWED_TIMEOUTS = 6
"""A connection is closed when a read on it is still unanswered after this many timeouts."""
ANSWER_ENVELOPE_BYTES = 1024
"""Upper bound on the bytes around an entry in an answer, beyond those around it in its add."""
MOST_REQUESTS = 1 << 16
"""Requests other than adds that may wait for answers on one connection; the callers have smaller windows of their own."""


def receive_limit_of(settings: ClientSettings) -> int:
    """The largest answer that is accepted, in bytes: any entry that bookies accept by default can be read."""
    return max(settings.frame_limit_bytes, BOOKIE_FRAME_BYTES) + ANSWER_ENVELOPE_BYTES


ReadCallback = Callable[[Any, ReadResponse | None, BookieError | None], None]
"""Called once with the token of the read and either the answer or the error."""


class AddSink(Protocol):
    """Receives the results of one ledger's adds. Never called from within a call to the channel."""

    def adds_acknowledged(self, stream: AddStream, entry_ids: Sequence[int]) -> None:
        """These entries are stored durably at the stream's bookie; usually all acknowledgements of the ledger in a chunk of answers."""

    def add_acknowledged(self, stream: AddStream, entry_id: int) -> None:
        """`adds_acknowledged` for a single entry, the usual case with many ledgers at once."""

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """The bookie answered with a status other than OK."""

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Adds in flight have an unknown outcome: the connection broke, could not be made, or an answer is overdue."""

    def resume_adds(self) -> None:
        """The channel was full and has room again."""

    def check_pace(self, now: float) -> None:
        """Adds were in flight at the time of a sweep, which comes ten times in a timeout."""


class InFlight(NamedTuple):
    """Adds of one ledger that were sent together. All bookies that receive the same adds share one value.

    Attributes:
        order: greater than those of all adds sent before: the last entry's id, where ids ascend. See `WriteTracker.order_of`.
        sent_at: seconds of the monotonic clock.
    """

    order: int
    entries: int
    size_bytes: int
    sent_at: float


class AddCredit:
    """Counts the unanswered adds of one bookie and their bytes, over all ledgers, and holds the limits of both."""

    __slots__ = ("_adds_maximum", "_bytes_maximum", "adds", "size_bytes")

    def __init__(self, settings: ClientSettings) -> None:
        self.adds = 0
        self.size_bytes = 0
        self._adds_maximum = settings.channel_window_entries
        self._bytes_maximum = settings.channel_window_bytes

    @property
    def has_room(self) -> bool:
        """Whether the bookie owes fewer answers than it may."""
        return self.adds < self._adds_maximum and self.size_bytes < self._bytes_maximum

    def use(self, adds: int, size_bytes: int) -> bool:
        """Count adds that are sent; False when the channel is now full."""
        self.adds += adds
        self.size_bytes += size_bytes
        return self.adds < self._adds_maximum and self.size_bytes < self._bytes_maximum


class AddStream:
    """The adds of one ledger to one bookie. Made by `BookieChannel.open_stream`.

    Attributes:
        oldest: the batch that has waited longest for its answers.
    """

    __slots__ = ("_credit", "_later", "bookie_id", "channel", "ledger_id", "oldest", "sink")

    def __init__(self, channel: BookieChannel, ledger_id: int, sink: AddSink) -> None:
        self.ledger_id = ledger_id
        self.bookie_id = channel.bookie_id
        self.sink = sink
        self.channel = channel
        self.oldest: InFlight | None = None
        self._credit = channel.credit
        self._later: deque[InFlight] | None = None
        """Batches behind the oldest. Made on demand: of many ledgers most have one batch at most, and each deque takes 600 bytes."""

    @property
    def has_room(self) -> bool:
        """Whether the bookie owes fewer answers than it may, over all ledgers."""
        return self._credit.has_room

    @property
    def losses(self) -> int:
        """How many connections to the bookie that carried requests were lost: the bookie may have restarted as often."""
        return self.channel.losses

    def now(self) -> float:
        """Seconds of the monotonic clock, for an `InFlight`."""
        return self.channel.now()

    def send(self, frames: bytes, in_flight: InFlight) -> bool:
        """Send whole add frames at the end of this tick of the loop; False when the channel is now full (they are sent all the same).

        Failures are reported to the sink, later.
        """
        self.track(in_flight)
        self.channel.write(frames)
        return self._credit.use(in_flight.entries, in_flight.size_bytes)

    def track(self, in_flight: InFlight) -> None:
        """Record a batch that is sent: by `send`, or by a multicast, for which the channel counts it."""
        if self.oldest is None:
            self.oldest = in_flight
        elif self._later is None:
            self._later = deque((in_flight,))
        else:
            self._later.append(in_flight)

    def release(self, acked_through: int) -> None:
        """Forget the batches that are answered in full.

        Args:
            acked_through: the bookie has acknowledged everything that it was sent up to this order number.
        """
        oldest, credit, later = self.oldest, self._credit, self._later
        while oldest is not None and oldest.order <= acked_through:
            credit.adds -= oldest.entries
            credit.size_bytes -= oldest.size_bytes
            oldest = self.oldest = later.popleft() if later else None

    def wait_for_room(self) -> None:
        """Have `AddSink.resume_adds` called when the channel is no longer full."""
        self.channel.wait_for_room(self.sink)

    def close(self) -> None:
        """Forget everything in flight; later answers are ignored."""
        if self.oldest is not None:
            self.release((self._later or (self.oldest,))[-1].order)
        self.channel.close_stream(self)


class BookieChannel(asyncio.Protocol):
    """See the module's text. It connects on demand, and again after a loss, with a backoff after each failure.

    Attributes:
        losses: connections that carried requests and are gone.
        now: seconds of the monotonic clock.

    Args:
        wire: version of the protocol, ``v2`` or ``v3``.
        numbers: gives a new number for each request; shared by all connections of a pool. scheduler: of the pool.
    """

    def __init__(
        self,
        resources: ChannelResources,
        bookie_id: str,
        wire: str,
        numbers: Iterator[int],
        scheduler: FlushScheduler,
    ) -> None:
        host, settings = resources.host, resources.settings
        self.bookie_id = bookie_id
        self.wire = wire
        self.credit = AddCredit(settings)
        self.losses = 0
        self.now = host.clock.monotonic
        self._host = host
        self._settings = settings
        self._scheduler = scheduler
        self._streams: dict[int, AddStream] = {}
        self._room_waiters: dict[int, AddSink] = {}
        self._exchange: Exchange = V3Exchange(numbers) if wire == "v3" else V2Exchange(numbers)
        self._unanswered = 0
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self._out: list[bytes] = []
        self._is_scheduled = False
        self._frames = FrameBuffer(receive_limit_of(settings))
        self._received_at = 0.0
        self._connector = BookieConnector(resources, bookie_id, self, self, self._exchange, self._frames.max_frame_bytes)
        period_s = min(settings.add_timeout_s, settings.read_timeout_s) / SWEEPS_PER_TIMEOUT
        self._sweep_timer = SweepTimer(host.clock, period_s, self._sweep)

    # Requests.

    def open_stream(self, ledger_id: int, sink: AddSink) -> AddStream:
        """Open the stream of a ledger's adds; an earlier stream of the same ledger gets no more answers."""
        stream = AddStream(self, ledger_id, sink)
        self._streams[ledger_id] = stream
        return stream

    def close_stream(self, stream: AddStream) -> None:
        """For `AddStream.close`."""
        if self._streams.get(stream.ledger_id) is stream:
            del self._streams[stream.ledger_id]
        self._room_waiters.pop(id(stream.sink), None)
        self._notify_room()

    def wait_for_room(self, sink: AddSink) -> None:
        """For `AddStream.wait_for_room`."""
        self._room_waiters[id(sink)] = sink

    def read(
        self, ledger_id: int, entry_id: int, callback: ReadCallback, token: Any, *, fence: bool = False, master_key: bytes | None = None
    ) -> None:
        """Read one entry, or the last one (`LAST_ENTRY`). See `call`.

        Args:
            fence: fence the ledger on this bookie first; needs the master key.
        """
        request = ReadRequest(ledger_id, entry_id, fence, master_key if fence else None, high_priority=fence)
        self.call(request, callback, token)

    def call(self, request: Request, callback: Callback, token: Any, timeout_s: float | None = None) -> None:
        """Send any request but adds and tokens. The callback is called later, exactly once, with the answer or the error.

        Args:
            timeout_s: the longest wait for the answer; None for `read_timeout_s`.

        Raises:
            ArgumentError: the version of this connection cannot carry the request; there will be no callback.
        """
        if self._closed:
            asyncio.get_running_loop().call_soon(callback, token, None, bookie_unavailable(self.bookie_id, "the client was closed"))
            return
        if self._unanswered >= MOST_REQUESTS:
            asyncio.get_running_loop().call_soon(callback, token, None, owes_too_much(self.bookie_id, self._unanswered))
            return
        wait_s = self._settings.read_timeout_s if timeout_s is None else timeout_s
        frame = self._exchange.submit(PendingRequest(request, callback, token, self.now(), wait_s))
        self._unanswered += 1
        if frame is not None:
            self.write(frame)

    def _answer(self, pendings: Sequence[PendingRequest], response: Answer | None, error: BookieError | None) -> None:
        self._unanswered -= len(pendings)
        for pending in pendings:
            pending.callback(pending.token, response, error)

    def connect(self) -> None:
        """Begin to connect before there is a request. A failure is not reported; the first request tries again."""
        if self._transport is None and not self._closed:
            self._connector.connect_early()

    def write(self, frames: bytes) -> None:
        """Send bytes at the end of this tick of the loop if connected by then, otherwise once connected."""
        self._out.append(frames)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.schedule_flush(self)

    def write_adds(self, parts: Sequence[bytes], adds: int, size_bytes: int) -> bool:
        """See `AddChannel.write_adds`."""
        self._out += parts
        if not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.schedule_flush(self)
        return self.credit.use(adds, size_bytes)

    def flush(self) -> None:
        """Write the buffer to the connection (BufferedChannel)."""
        self._is_scheduled = False
        if self._closed or not self._out:
            return
        if self._transport is not None:
            out, self._out = self._out, []
            self._transport.write(out[0] if len(out) == 1 else self._scheduler.join(out))
            self._sweep_timer.arm()
        else:
            self._connector.connect()

    # The connection.

    @property
    def is_closed(self) -> bool:
        """Whether the client closed this channel."""
        return self._closed

    @property
    def has_requests(self) -> bool:
        """Whether requests wait for a connection (ConnectingChannel)."""
        return bool(self._out)

    def is_on(self, transport: asyncio.Transport) -> bool:
        """Whether this is the present connection (ConnectingChannel)."""
        return self._transport is transport

    def connected(self, transport: asyncio.Transport) -> None:
        """Use this connection (ConnectingChannel)."""
        self._transport = transport
        self._received_at = self.now()
        self.flush()

    def connect_failed(self, error: BookieError) -> None:
        """Fail every request, since there is no connection (ConnectingChannel)."""
        self._fail_all(error)

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the transport, also after our own `abort`."""
        if self._connector.handshake is not None:
            self._connector.handshake.connection_lost(error)
        if self._transport is None:
            return  # It never carried a request.
        self._transport = None
        why = self._connector.connection_lost(error, self._received_at)
        self.losses += 1
        self._frames = FrameBuffer(self._frames.max_frame_bytes)
        if not self._closed:
            self._host.trace("client.connection_lost", bookie=self.bookie_id, why=why)
            self._fail_all(connection_broken(self.bookie_id, f"{why}; requests in flight have an unknown outcome"))

    def _fail_all(self, error: BookieError) -> None:
        """Fail every request. The callbacks may already use this channel again."""
        self._out.clear()
        pendings = self._exchange.drain()
        for stream in list(self._streams.values()):
            if stream.oldest is not None:
                stream.sink.bookie_failed(self.bookie_id, error)
        self._answer(pendings, None, error)
        self._notify_room()

    def close(self) -> None:
        """Close the connection and fail every request; writers close their own streams. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._connector.stop()
        self._sweep_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._fail_all(bookie_unavailable(self.bookie_id, "the client was closed"))

    # Answers.

    def data_received(self, data: bytes) -> None:
        """Process a chunk: first gather the answers to adds, then notify each ledger concerned once."""
        if self._connector.handshake is not None:
            self._connector.handshake.data_received(data)
            return
        if self._transport is None:
            return  # A connection whose end came at once with that of its TLS handshake never carried a request.
        self._scheduler.received_at = self._received_at = self.now()
        frames = self._frames
        gathered: Gathered = {}
        try:
            try:
                buffer, more, start = frames.feed_apart(data)
                position = self._parse_frames(buffer, 0, gathered)
                if more:
                    buffer, position = more, self._parse_frames(more, start, gathered)
                frames.keep(buffer, position)
            except ProtocolError as error:
                self._host.trace("client.protocol_error", bookie=self.bookie_id, why=str(error))
                self._connector.violation = error
                if self._transport is not None:
                    self._transport.abort()
            self._notify_acknowledged(gathered)
        finally:
            self._scheduler.received_at = 0.0
        if self._room_waiters:
            self._notify_room()

    def _parse_frames(self, buffer: bytes, position: int, gathered: Gathered) -> int:
        """Process the whole frames from `position` on, and return where they end.

        Args:
            gathered: collects the entries that were stored, by ledger.
        """
        end, limit, exchange = len(buffer), self._frames.max_frame_bytes, self._exchange
        while position < end:
            run = exchange.scan_adds(buffer, position, end)
            if run is not None:
                self._handle_adds(run.ledger_id, run.entry_ids, run.status, gathered)
                position = run.end
                if position < end:
                    position = exchange.gather_adds(buffer, position, end, gathered)
                continue
            frame = next_frame(buffer, position, end, limit)
            if frame is None:
                break
            position = frame[1]
            self._handle_response(*exchange.decode(buffer, *frame), gathered)
        return position

    def _handle_adds(self, ledger_id: int, entry_ids: list[int], status: Status, gathered: Gathered) -> None:
        if status is Status.OK:
            if ledger_id in gathered:
                before = gathered[ledger_id]
                entry_ids = [*(before if isinstance(before, list) else (before,)), *entry_ids]
            gathered[ledger_id] = entry_ids
            return
        self._notify_acknowledged(gathered)  # They came first, and a refusal may end the writer.
        gathered.clear()
        stream = self._streams.get(ledger_id)
        if stream is not None:
            stream.sink.add_refused(self.bookie_id, entry_ids[0], status)

    def _notify_acknowledged(self, gathered: Gathered) -> None:
        """Notify each ledger once of its entries that were stored."""
        stream_of = self._streams.get
        for ledger_id, stored in gathered.items():
            stream = stream_of(ledger_id)
            if stream is None:
                continue  # The bookie was replaced, or the writer is gone.
            if isinstance(stored, list):
                stream.sink.adds_acknowledged(stream, stored)
            else:
                stream.sink.add_acknowledged(stream, stored)

    def _handle_response(self, number: int, response: Answer, gathered: Gathered) -> None:
        if isinstance(response, AddResponse):
            if response.ledger_id != v3.NO_ID or self.wire != "v3":
                self._handle_adds(response.ledger_id, [response.entry_id], response.status, gathered)
                return
            self._notify_acknowledged(gathered)
            gathered.clear()
            # A refusal without ids: the bookie did not read the request, and refuses every add in flight likewise.
            for stream in list(self._streams.values()):
                if stream.oldest is not None:
                    stream.sink.add_refused(self.bookie_id, stream.oldest.order, response.status)
            return
        if not self._connector.is_confirmed and response.status in EXPLICIT_NEGATIVES:
            # Another bookie may listen at this address. A digest proves an entry; but "no entry" says nothing about our bookie.
            response.status = Status.UNKNOWN_LEDGER_STATE
        pendings, frame = self._exchange.match(number, response, self.now())
        if frame is not None:
            self.write(frame)
        self._answer(pendings, response, None)

    def _notify_room(self) -> None:
        if self._room_waiters and self.credit.has_room:
            waiters, self._room_waiters = self._room_waiters, {}
            for sink in waiters.values():
                sink.resume_adds()

    # Overdue answers.

    def _sweep(self, now: float) -> bool:
        """Fail what is overdue at this time; returns whether any answer is still awaited."""
        settings = self._settings
        oldest_sent_at = now
        for stream in list(self._streams.values()):
            oldest = stream.oldest
            if oldest is not None and oldest.sent_at + settings.add_timeout_s <= now:
                oldest_sent_at = min(oldest_sent_at, oldest.sent_at)
                what = f"adds to ledger {stream.ledger_id}"
                stream.sink.bookie_failed(self.bookie_id, request_timeout(self.bookie_id, what, settings.add_timeout_s))
            elif oldest is not None:
                stream.sink.check_pace(now)
        owed_since = self._exchange.owed_since(now)
        overdue = self._exchange.overdue(now)
        for pending in overdue:
            oldest_sent_at = min(oldest_sent_at, pending.sent_at)
            self._answer((pending,), None, request_timeout(self.bookie_id, describe(pending.request), pending.timeout_s))
        dead = self._received_at < oldest_sent_at < now or owed_since + OWED_TIMEOUTS * settings.read_timeout_s <= now
        if self._transport is not None and dead:
            # Nothing was received since the overdue request was sent: the connection is dead even if no error was reported.
            # Or an answer will never come, and later requests for the same entry wait behind it.
            self._transport.abort()
            return False
        return bool(len(self._exchange)) or any(stream.oldest is not None for stream in self._streams.values())
