"""One connection to one bookie: requests out, answers in, nothing made per entry on the way of adds.

A connection speaks one version of the protocol from its first byte on; `client.exchange` knows how they differ. Over v2 an answer is
matched by operation, ledger and entry, and carries nothing that tells an answer to a fencing read from one to a plain read. So requests
that fence never share a connection with those that do not: recovery has a pool of its own. Adds are matched by ledger and entry over
both versions. Source: BookKeeper `PerChannelBookieClient`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from triplicate.client.connection.authentication import Authenticator, Handshake
from triplicate.client.connection.exchange import Answer, Callback, Exchange, Gathered, PendingRequest, V2Exchange, V3Exchange, describe
from triplicate.client.connection.flush_scheduler import FlushScheduler
from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, broken, overloaded, timed_out, unavailable
from triplicate.config import ClientSettings
from triplicate.errors import BookieError, ProtocolError, TriplicateError
from triplicate.metadata import BookieRegistry, Location
from triplicate.runtime import Backoff, Host, TaskScope, Timer, sleep, timeout_at
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
"""A connection on which a read is still not answered after so many time-outs is given up."""
WRITE_BUFFER_BYTES = 1 << 24
CONFIRM_FIRST_S = 0.25
CONFIRM_LONGEST_S = 10.0
"""Bounds of the pauses between the questions whether a bookie still belongs where it was last known to listen."""
ANSWER_ENVELOPE_BYTES = 1024
"""What may stand around an entry in an answer beyond what stood around it in its add."""
MOST_REQUESTS = 1 << 16
"""Requests other than adds that may wait for answers on one connection; those who ask have smaller windows of their own."""


def receive_limit_of(settings: ClientSettings) -> int:
    """The greatest answer that is accepted: every entry that a bookie takes by default can be read, whoever wrote it."""
    return max(settings.frame_limit_bytes, BOOKIE_FRAME_BYTES) + ANSWER_ENVELOPE_BYTES


ReadCallback = Callable[[Any, ReadResponse | None, BookieError | None], None]
"""Called once with the token of the read and either the answer or what went wrong."""


class AddSink(Protocol):
    """Who sent adds and wants to know what became of them. Never called from within a call to the channel."""

    def adds_acknowledged(self, lane: AddStream, entry_ids: Sequence[int]) -> None:
        """These entries are stored durably at the lane's bookie: all that a chunk of answers says of the ledger, mostly."""

    def add_acknowledged(self, lane: AddStream, entry_id: int) -> None:
        """`adds_acknowledged` where that is one entry, as it mostly is with many ledgers at once."""

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """The bookie answered, and not with OK."""

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Adds on the way have an unknown outcome: the connection broke, could not be made, or an answer is overdue."""

    def room_again(self) -> None:
        """The channel had been full and is not any more."""


InFlight = tuple[int, int, int, float]
"""Adds of one ledger that were sent in one go: their mark, entries, bytes, and when. One for all the bookies that they go to alike."""


class AddStream:
    """The adds of one ledger on their way to one bookie. Made by `BookieChannel.open_lane`."""

    __slots__ = ("_later", "bookie_id", "channel", "ledger_id", "oldest", "sink")

    def __init__(self, channel: BookieChannel, ledger_id: int, sink: AddSink) -> None:
        self.ledger_id = ledger_id
        self.bookie_id = channel.bookie_id
        self.sink = sink
        self.channel = channel
        self.oldest: InFlight | None = None
        """The flight that has waited longest for its answer."""
        self._later: deque[InFlight] | None = None
        """Those behind it. Made when there is one: of many ledgers most have one flight at most, and each deque takes 600 bytes."""

    @property
    def has_room(self) -> bool:
        """Whether the bookie owes fewer answers than it may, over all ledgers."""
        return self.channel.has_room

    @property
    def losses(self) -> int:
        """How many connections to the bookie are gone that carried requests: it may have been started anew as often."""
        return self.channel.losses

    def now(self) -> float:
        """What the clock says, for a flight."""
        return self.channel.now()

    def send(self, frames: bytes, flight: InFlight) -> bool:
        """Send whole add frames at the end of this turn of the loop; False when the channel is now full (they are sent all the same).

        Failures come through the sink, later.

        Args:
            flight: what the frames are. Its mark is greater than those of all that was sent before: the last entry's id, where ids ascend.
        """
        channel = self.channel
        self.await_answers(flight)
        channel.adds_outstanding += flight[1]
        channel.bytes_outstanding += flight[2]
        channel.write(frames)
        return channel.adds_outstanding < channel.most_adds and channel.bytes_outstanding < channel.most_bytes

    def await_answers(self, flight: InFlight) -> None:
        """Note what is sent; for `send`, and for who sends to several lanes in one go and has the channel count it."""
        if self.oldest is None:
            self.oldest = flight
        elif self._later is None:
            self._later = deque((flight,))
        else:
            self._later.append(flight)

    def settle(self, reach: int) -> None:
        """Forget the flights that are answered in full.

        Args:
            reach: the bookie has acknowledged everything it was sent up to this mark.
        """
        flight, channel, later = self.oldest, self.channel, self._later
        while flight is not None and flight[0] <= reach:
            _, entries, size, _ = flight
            channel.adds_outstanding -= entries
            channel.bytes_outstanding -= size
            flight = self.oldest = later.popleft() if later else None

    def wait_for_room(self) -> None:
        """Have `room_again` called when the channel is no longer full."""
        self.channel.wait_for_room(self.sink)

    def close(self) -> None:
        """Forget everything on the way; what is still answered is ignored."""
        if self.oldest is not None:
            self.settle((self._later or (self.oldest,))[-1][0])
        self.channel.close_lane(self)


class BookieChannel(asyncio.Protocol):
    """See the module's text. Connects on demand, and again after a loss, with a pause that grows after each failure.

    Args:
        bookie_id: its address is looked up anew for each connection, since v2 has no greeting that would unmask a stranger who took
            over an old address.
        scope: owns the task that connects.
        wire: version of the protocol, ``v2`` or ``v3``.
        numbers: a fresh number for each request, shared by all connections of a pool. turn: of the pool.
        authenticator: what must be said first on each connection; None says nothing.
    """

    def __init__(
        self,
        host: Host,
        bookie_id: str,
        directory: BookieRegistry,
        settings: ClientSettings,
        scope: TaskScope,
        wire: str,
        numbers: Iterator[int],
        turn: FlushScheduler,
        authenticator: Authenticator | None = None,
    ) -> None:
        self.bookie_id = bookie_id
        self.wire = wire
        self.adds_outstanding = 0
        self.bytes_outstanding = 0
        self.most_adds = settings.channel_window_entries
        self.most_bytes = settings.channel_window_bytes
        self.losses = 0
        """How many connections that carried requests are gone."""
        self.now = host.clock.monotonic
        self._host = host
        self._directory = directory
        self._settings = settings
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[int, AddStream] = {}
        self._exchange: Exchange = V3Exchange(numbers) if wire == "v3" else V2Exchange(numbers)
        self._unanswered = 0
        self._authenticator = authenticator
        self._handshake: Handshake | None = None
        self._room_waiters: dict[int, AddSink] = {}
        self._transport: asyncio.Transport | None = None
        self._unconfirmed: asyncio.Task[None] | None = None
        """Runs while the connection stands at the address last known, and nothing yet says that the bookie belongs there."""
        self._connecting = False
        self._closed = False
        self._turn = turn
        self._out: list[bytes] = []
        self._flush_due = False
        self._receive_limit = receive_limit_of(settings)
        self._frames = FrameBuffer(self._receive_limit)
        self._received_at = 0.0
        self._sweep: Timer | None = None
        self._sweep_late_at = 0.0
        self._has_stood_still = False
        """Whether the last sweep came so late that it judged nothing."""
        backoff_maximum = max(settings.reconnect_first_s, settings.reconnect_maximum_s)
        self._backoff = Backoff(settings.reconnect_first_s, backoff_maximum, host.entropy.stream(f"reconnect {bookie_id}"))
        self._retry_at = 0.0
        self._last_error = ""

    # Requests.

    @property
    def has_room(self) -> bool:
        """Whether the bookie owes fewer answers than it may."""
        return self.adds_outstanding < self.most_adds and self.bytes_outstanding < self.most_bytes

    def open_lane(self, ledger_id: int, sink: AddSink) -> AddStream:
        """Make the lane for a ledger's adds; a lane opened before for the same ledger gets no more answers."""
        lane = AddStream(self, ledger_id, sink)
        self._lanes[ledger_id] = lane
        return lane

    def close_lane(self, lane: AddStream) -> None:
        """For `AddStream.close`."""
        if self._lanes.get(lane.ledger_id) is lane:
            del self._lanes[lane.ledger_id]
        self._room_waiters.pop(id(lane.sink), None)
        self._tell_room()

    def wait_for_room(self, sink: AddSink) -> None:
        """For `AddStream.wait_for_room`."""
        self._room_waiters[id(sink)] = sink

    def read(
        self, ledger_id: int, entry_id: int, callback: ReadCallback, token: Any, *, fence: bool = False, master_key: bytes | None = None
    ) -> None:
        """Ask for one entry, or the last one (`LAST_ENTRY`). See `call`.

        Args:
            fence: fence the ledger on this bookie first; needs the master key.
        """
        request = ReadRequest(ledger_id, entry_id, fence, master_key if fence else None, high_priority=fence)
        self.call(request, callback, token)

    def call(self, request: Request, callback: Callback, token: Any, timeout_s: float | None = None) -> None:
        """Send anything but adds and tokens. The callback comes later, exactly once, with the answer or what went wrong.

        Args:
            timeout_s: until the answer must be here; None takes `read_timeout_s`.

        Raises:
            ArgumentError: the version of this connection cannot carry the request; there will be no callback.
        """
        if self._closed:
            self._loop.call_soon(callback, token, None, unavailable(self.bookie_id, "the client was closed"))
            return
        if self._unanswered >= MOST_REQUESTS:
            self._loop.call_soon(callback, token, None, overloaded(self.bookie_id, self._unanswered))
            return
        wait_s = self._settings.read_timeout_s if timeout_s is None else timeout_s
        frame = self._exchange.ask(PendingRequest(request, callback, token, self.now(), wait_s))
        self._unanswered += 1
        if frame is not None:
            self.write(frame)

    def _answer(self, pendings: Sequence[PendingRequest], response: Answer | None, error: BookieError | None) -> None:
        self._unanswered -= len(pendings)
        for pending in pendings:
            pending.callback(pending.token, response, error)

    def connect(self) -> None:
        """Begin to connect, if that is not done. Should it fail before anything is asked for, nobody hears of it, and the next try comes
        with the first request.
        """
        if self._transport is None and not self._closed and not self._scope.closing and self._retry_at <= self.now():
            self._begin_to_connect()

    def _begin_to_connect(self) -> None:
        if not self._connecting:
            self._connecting = True
            if self.now() < self._retry_at or self._scope.closing:
                self._loop.call_soon(self._refuse_for_now)
            else:
                self._scope.spawn(self._connect(), name=f"connect {self.bookie_id}")

    def write(self, frames: bytes) -> None:
        """Send bytes at the end of this turn of the loop if connected by then, else as soon as that is done."""
        self._out.append(frames)
        if not self._flush_due:
            self._flush_due = True
            self._turn.write(self)

    def take_adds(self, parts: Sequence[bytes], adds: int, size_bytes: int) -> bool:
        """See `turn.Channel`."""
        self.adds_outstanding += adds
        self.bytes_outstanding += size_bytes
        self._out += parts
        if not self._flush_due:
            self._flush_due = True
            self._turn.write(self)
        return self.adds_outstanding < self.most_adds and self.bytes_outstanding < self.most_bytes

    def flush(self) -> None:
        """Send what was written in this turn (Connection)."""
        self._flush_due = False
        if self._closed or not self._out:
            return
        if self._transport is not None:
            out, self._out = self._out, []
            self._transport.write(out[0] if len(out) == 1 else self._turn.joined(out))
            if self._sweep is None:
                self._arm_sweep()
        else:
            self._begin_to_connect()

    # The connection.

    def _refuse_for_now(self) -> None:
        self._connecting = False
        self._fail_all(unavailable(self.bookie_id, f"{self._last_error or 'the client is closing'}; it is tried again in a moment"))

    async def _connect(self) -> None:
        deadline = self.now() + self._settings.connect_timeout_s
        transport: asyncio.Transport | None = None
        location: Location | None = None
        try:
            async with timeout_at(deadline):
                location = await self._directory.locate(self.bookie_id, self._settings.address_wait_s)
                transport = await self._open(location)
                if self._authenticator is not None:
                    limit = self._receive_limit
                    self._handshake = Handshake(self._authenticator, self._exchange, transport, limit)
                    await self._handshake.run()
        except TimeoutError:
            self._connect_failed(f"no connection within {self._settings.connect_timeout_s:g} s", transport, location)
        except (OSError, TriplicateError) as error:
            self._connect_failed(str(error) or type(error).__name__, transport, location)
        except BaseException as error:
            # A fault of ours, or the end of the client: whoever waits for this connection must hear that it will not come.
            self._connect_failed(f"connecting was broken off: {error!r}", transport)
            raise
        else:
            if transport.is_closing() and not self._closed:
                # A bookie that is about to start accepts connections and closes them at once; `connection_lost` has been here already.
                self._connect_failed("it closed the connection at once", transport, location)
                return
            self._connecting = False
            self._handshake = None
            if self._closed:
                transport.abort()
                return
            transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
            self._backoff.reset()
            self._transport = transport
            self._received_at = self.now()
            if not location.registered:
                self._unconfirmed = self._scope.spawn(self._confirm(transport, location), name=f"address of {self.bookie_id}")
            self.flush()

    async def _open(self, location: Location) -> asyncio.Transport:
        address, port = location.info.address
        if location.registered is not False:
            return (await self._host.network.connect(lambda: self, address, port))[0]
        try:
            # Mostly its process is gone, and perhaps its machine, which then answers nothing at all.
            async with timeout_at(self.now() + self._settings.address_wait_s):
                return (await self._host.network.connect(lambda: self, address, port))[0]
        except TimeoutError:
            raise unavailable(self.bookie_id, "it is not registered, and does not answer where it last was") from None

    async def _confirm(self, transport: asyncio.Transport, location: Location) -> None:
        """Find out whether the bookie still belongs where this connection went by memory, and end the connection if it does not."""
        self._host.trace("client.connected_from_memory", bookie=self.bookie_id, registered=location.registered)
        pause = Backoff(CONFIRM_FIRST_S, CONFIRM_LONGEST_S, self._host.entropy.stream(f"confirm {self.bookie_id}"))
        while self._transport is transport:
            await sleep(self._host.clock, pause.next_s())
            try:
                found = await self._directory.resolve(self.bookie_id)
            except (TriplicateError, OSError):
                continue  # Still nobody knows.
            self._unconfirmed = None
            moved = found.rpc_address != location.info.rpc_address
            self._host.trace("client.address_confirmed", bookie=self.bookie_id, moved=moved)
            if moved and self._transport is transport:
                transport.abort()
            return

    def _stop_confirming(self) -> None:
        task, self._unconfirmed = self._unconfirmed, None
        if task is not None:
            task.cancel()

    def _connect_failed(self, why: str, transport: asyncio.Transport | None, location: Location | None = None) -> None:
        if location is not None and location.registered is False:
            self._directory.forget(self.bookie_id)
        if transport is not None:
            transport.abort()
        self._connecting = False
        self._handshake = None
        self._last_error = why
        if self._out:  # Otherwise nobody asked for anything yet.
            self._retry_at = self.now() + self._backoff.next_s()
        self._host.trace("client.connect_failed", bookie=self.bookie_id, why=why)
        self._fail_all(unavailable(self.bookie_id, why))

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the transport, also after our own `abort`."""
        if self._handshake is not None:
            self._handshake.connection_lost()
        if self._transport is None:
            return  # It never carried a request.
        self._transport = None
        self._stop_confirming()
        self.losses += 1
        self._frames = FrameBuffer(self._receive_limit)
        if not self._closed:
            why = f"the connection broke ({error})" if error is not None else "it closed the connection"
            self._last_error = why
            self._host.trace("client.connection_lost", bookie=self.bookie_id, why=why)
            self._fail_all(broken(self.bookie_id, f"{why}; what was on the way has an unknown outcome"))

    def _fail_all(self, error: BookieError) -> None:
        """Tell everybody who waits. What they do about it may already use this channel again."""
        self._out.clear()
        pendings = self._exchange.drain()
        for lane in list(self._lanes.values()):
            if lane.oldest is not None:
                lane.sink.bookie_failed(self.bookie_id, error)
        self._answer(pendings, None, error)
        self._tell_room()

    def close(self) -> None:
        """Drop the connection. Requests on the way are failed; lanes belong to their writers, who close them. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._stop_confirming()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._transport is not None:
            self._transport.abort()
        self._fail_all(unavailable(self.bookie_id, "the client was closed"))

    # Answers.

    def data_received(self, data: bytes) -> None:
        """Take in a chunk: all answers to adds in one loop, then every ledger concerned once."""
        if self._handshake is not None:
            self._handshake.data_received(data)
            return
        self._turn.received_at = self._received_at = self.now()
        frames = self._frames
        gathered: Gathered = {}
        try:
            try:
                buffer, more, start = frames.feed_apart(data)
                position = self._take_frames(buffer, 0, gathered)
                if more:
                    buffer, position = more, self._take_frames(more, start, gathered)
                frames.keep(buffer, position)
            except ProtocolError as error:
                self._host.trace("client.protocol_error", bookie=self.bookie_id, why=str(error))
                if self._transport is not None:
                    self._transport.abort()
            self._tell_acknowledged(gathered)
        finally:
            self._turn.received_at = 0.0
        if self._room_waiters:
            self._tell_room()

    def _take_frames(self, buffer: bytes, position: int, gathered: Gathered) -> int:
        """Work through the whole frames from `position` on and return where they end.

        Args:
            gathered: where to note the entries that were stored, by ledger.
        """
        end, limit, exchange = len(buffer), self._receive_limit, self._exchange
        while position < end:
            run = exchange.scan_adds(buffer, position, end)
            if run is not None:
                self._take_adds(run.ledger_id, run.entry_ids, run.status, gathered)
                position = run.end
                if position < end:
                    position = exchange.gather_adds(buffer, position, end, gathered)
                continue
            frame = next_frame(buffer, position, end, limit)
            if frame is None:
                break
            position = frame[1]
            self._take_response(*exchange.decode(buffer, *frame), gathered)
        return position

    def _take_adds(self, ledger_id: int, entry_ids: list[int], status: Status, gathered: Gathered) -> None:
        if status is Status.OK:
            if ledger_id in gathered:
                before = gathered[ledger_id]
                entry_ids = [*(before if isinstance(before, list) else (before,)), *entry_ids]
            gathered[ledger_id] = entry_ids
            return
        self._tell_acknowledged(gathered)  # It came first, and a refusal may end the writer.
        gathered.clear()
        lane = self._lanes.get(ledger_id)
        if lane is not None:
            lane.sink.add_refused(self.bookie_id, entry_ids[0], status)

    def _tell_acknowledged(self, gathered: Gathered) -> None:
        """Tell every ledger once which of its entries were stored."""
        lane_of = self._lanes.get
        for ledger_id, stored in gathered.items():
            lane = lane_of(ledger_id)
            if lane is None:
                continue  # The bookie was replaced, or the writer is gone.
            if isinstance(stored, list):
                lane.sink.adds_acknowledged(lane, stored)
            else:
                lane.sink.add_acknowledged(lane, stored)

    def _take_response(self, number: int, response: Answer, gathered: Gathered) -> None:
        if isinstance(response, AddResponse):
            if response.ledger_id != v3.NO_ID or self.wire != "v3":
                self._take_adds(response.ledger_id, [response.entry_id], response.status, gathered)
                return
            self._tell_acknowledged(gathered)
            gathered.clear()
            # A refusal without ids: the bookie did not look at what was asked, and so it goes with all adds on the way.
            for lane in list(self._lanes.values()):
                if lane.oldest is not None:
                    lane.sink.add_refused(self.bookie_id, lane.oldest[0], response.status)
            return
        if self._unconfirmed is not None and response.status in EXPLICIT_NEGATIVES:
            # Another bookie may listen here. What it has carries its digest; what it has not says nothing about ours.
            response.status = Status.UNKNOWN_LEDGER_STATE
        pendings, frame = self._exchange.match(number, response, self.now())
        if frame is not None:
            self.write(frame)
        self._answer(pendings, response, None)

    def _tell_room(self) -> None:
        if self._room_waiters and self.has_room:
            waiters, self._room_waiters = self._room_waiters, {}
            for sink in waiters.values():
                sink.room_again()

    # Overdue answers.

    def _arm_sweep(self) -> None:
        period = min(self._settings.add_timeout_s, self._settings.read_timeout_s) / SWEEPS_PER_TIMEOUT
        self._sweep_late_at = self.now() + 2 * period
        self._sweep = self._host.clock.call_at(self.now() + period, self._sweep_overdue)

    def _sweep_overdue(self) -> None:
        """One timer for everything that waits; it rests while nothing does."""
        self._sweep = None
        now, settings = self.now(), self._settings
        self._has_stood_still = now > self._sweep_late_at and not self._has_stood_still
        if self._has_stood_still:
            # This process was stopped or busy, so requests may not have been sent, and answers not been read. The next look judges.
            self._arm_sweep()
            return
        oldest_sent_at = now
        for lane in list(self._lanes.values()):
            flight = lane.oldest
            if flight is not None and flight[3] + settings.add_timeout_s <= now:
                oldest_sent_at = min(oldest_sent_at, flight[3])
                what = f"adds to ledger {lane.ledger_id}"
                lane.sink.bookie_failed(self.bookie_id, timed_out(self.bookie_id, what, settings.add_timeout_s))
        owed_since = self._exchange.owed_since(now)
        overdue = self._exchange.overdue(now)
        for pending in overdue:
            oldest_sent_at = min(oldest_sent_at, pending.sent_at)
            self._answer((pending,), None, timed_out(self.bookie_id, describe(pending.request), pending.timeout_s))
        dead = self._received_at < oldest_sent_at < now or owed_since + OWED_TIMEOUTS * settings.read_timeout_s <= now
        if self._transport is not None and dead:
            # Not one byte since the overdue request was sent: this connection is dead, whatever the operating system thinks. Or an
            # answer will never come, and whoever asks for the same waits behind it.
            self._transport.abort()
        elif len(self._exchange) or any(lane.oldest is not None for lane in self._lanes.values()):
            self._arm_sweep()
