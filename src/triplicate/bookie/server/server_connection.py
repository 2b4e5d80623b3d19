"""One connection: decodes the frames of each chunk, combines adds for the journal, and stops reading when a resource is full."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.add_processor import AddProcessor
from triplicate.bookie.server.budgets import FrameBudget
from triplicate.bookie.server.dialects import Dialect, V2Dialect, V3Dialect
from triplicate.bookie.server.oversized_frame import OversizedFrame
from triplicate.bookie.server.request_context import RequestContext
from triplicate.bookie.server.request_processor import RequestProcessor, changes_ledger, is_journaled, ledger_of
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError, FrameTooLarge, ProtocolError
from triplicate.runtime import Host, TaskScope
from triplicate.wire import (
    AddRequest,
    BatchReadResponse,
    FrameBuffer,
    ReadLacResponse,
    ReadResponse,
    Request,
    Response,
    Status,
    WriteLacRequest,
    excess_of,
    may_be_add,
    next_frame,
)

SHORT_RUN = 4
"""After a run of adds shorter than this, the next adds are decoded one by one, since ledgers may alternate."""
JOURNAL_CHECK_S = 0.02
"""Interval at which a connection that waits for a journal checks it."""


class ServerConnection(asyncio.Protocol):
    """A client.

    Args:
        frames: memory shared with the other connections. It changes the fields that begin with `frame_`.
        answers_bytes: while the peer leaves more than this unread, the connection is not read and gets no answers to reads.
        opened: called when the connection is made.
        closed: called when the connection is gone.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        requests: RequestProcessor,
        scope: TaskScope,
        frames: FrameBudget,
        answers_bytes: int,
        opened: Callable[[ServerConnection], None],
        closed: Callable[[ServerConnection], None],
    ) -> None:
        self.reads: deque[RequestContext] = deque()
        self.peer = "?"
        self._host = host
        self._settings = settings
        self._requests = requests
        self._storage = requests.storage
        self._metrics = requests.metrics
        self._scope = scope
        self._opened = opened
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._adds = AddProcessor(requests, self, host.trace)
        self._older = V2Dialect()
        self._dialect: Dialect = V3Dialect(not settings.clients_before_4_15)
        """The peer's protocol: version 3 until the peer sends something else, then the older one for good."""
        self._frames = FrameBuffer(settings.frame_limit_bytes, settings.frame_excess_bytes)
        self._oversized: OversizedFrame | None = None
        """The current frame is over the limit; its bytes are dropped as they arrive."""
        self._budget = frames
        self._answers_bytes = answers_bytes
        self.frame_held = 0
        self.frame_reserved = 0
        self.frame_since = 0.0
        self._held: dict[str, None] = {}
        """Reasons why the connection is not read now."""
        self._buffer = b""
        self._position = 0
        self._turn_bytes = 0
        self._turn_requests = 0
        self._alternating = False
        """The last run of adds was short and not the last of its chunk, so ledgers may alternate."""
        self._unreadable: int | None = None
        """The ledger whose state could not be read for the current frame."""

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._answers_bytes)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else str(name)
        self._metrics.connections.inc()
        self._opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._budget.forget(self)
        self._storage.forget_waiter(self)
        self._metrics.connections.dec()
        self._requests.forget(self)
        self._closed(self)

    def data_received(self, data: bytes) -> None:
        self._run(data)

    def pause_writing(self) -> None:
        self._hold("peer does not read")

    def resume_writing(self) -> None:
        self._requests.reads.wake()
        self._release("peer does not read")

    # Shared memory.

    @property
    def is_read(self) -> bool:
        return self._transport is not None and not self._held

    @property
    def answers_waiting_bytes(self) -> int:
        """Bytes that the peer has not read yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def pause_frames(self) -> None:
        self._hold("frames are full")

    def resume_frames(self) -> None:
        self._release("frames are full")

    def share_answers(self, most_bytes: int) -> None:
        """Set the number of bytes that may wait for the peer."""
        self._answers_bytes = most_bytes
        if self._transport is not None and not self._transport.is_closing():
            self._transport.set_write_buffer_limits(high=most_bytes)

    def drop(self, reason: str) -> None:
        """Abort the connection because it holds memory that others need."""
        self._host.trace("bookie.connection_dropped", peer=self.peer, reason=reason)
        if self._transport is not None:
            self._transport.abort()

    # Back-pressure.

    @property
    def accepts_answers(self) -> bool:
        return self._transport is not None and "peer does not read" not in self._held

    @property
    def is_gone(self) -> bool:
        return self._transport is None

    def _hold(self, reason: str) -> None:
        if self._transport is None or reason in self._held:
            return
        self._metrics.blocked.labels(reason).inc()
        if not self._held:
            self._transport.pause_reading()
        self._held[reason] = None

    def _release(self, reason: str) -> None:
        if reason in self._held:
            del self._held[reason]
            if not self._held and self._transport is not None:
                # Buffered frames come first; they may pause the connection again.
                self._run(b"")
                if not self._held and self._transport is not None:
                    self._transport.resume_reading()

    # Frames.

    def _run(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            if self._oversized is not None:
                data = data[self._pass_over(self._oversized, data, 0) :]
                if not data:
                    return
            buffer, more, start = self._frames.feed_apart(data)
            if not buffer:
                self._budget.record(self, self._frames.held_bytes, self._frames.wanted_bytes)
                return
            self._buffer, self._position, self._turn_bytes, self._turn_requests = buffer, 0, 0, 0
            if not self._held:
                self._handle_frames()
            if more and self._position == len(buffer):
                self._buffer, self._position, more = more, start, b""
                if not self._held:
                    self._handle_frames()
            self._adds.submit()
            if more:
                # The frame begun before is not complete, so the bytes after it wait too.
                self._buffer, self._position = self._buffer[self._position :] + more[start:], 0
            self._frames.keep(self._buffer, self._position)
            self._budget.record(self, self._frames.held_bytes, self._frames.wanted_bytes)
        except (ProtocolError, FrameTooLarge) as error:
            self._adds.submit()
            self._host.trace("bookie.protocol_error", peer=self.peer, error=str(error))
            self.close()
        finally:
            self._buffer = b""

    def _handle_frames(self) -> None:
        buffer, limit = self._buffer, self._settings.frame_limit_bytes
        end = len(buffer)
        handles = self._storage.ledgers
        while self._position < end and not self._held:
            dialect = self._dialect
            if self._alternating:
                self._alternating = False
                reached = self._adds.admit_alternating(buffer, self._position, end, limit)
                if reached > self._position:
                    self._position = reached
                    self._wait_for_room()
                    continue
            adds = dialect.scan_adds(buffer, self._position, end, limit)
            if adds is not None:
                ledger_id = adds.run.ledger_id
                handle = handles.get(ledger_id)
                if handle is not None:
                    self._adds.admit(adds, dialect, handle)
                elif not self._load(ledger_id):
                    self._adds.refuse(adds, dialect, Status.IO_ERROR)
                else:
                    return
                self._position = adds.end
                self._alternating = dialect is self._older and adds.end < end and len(adds.run.entry_ids) < SHORT_RUN
                self._wait_for_room()
                continue
            size = excess_of(buffer, self._position, end, limit, self._settings.frame_excess_bytes)
            if size:
                self._adds.submit()
                self._oversized = OversizedFrame(size)
                self._position = self._pass_over(self._oversized, buffer, self._position)
                self._end_turn(None)
                continue
            frame = next_frame(buffer, self._position, end, limit)
            if frame is None:
                return
            self._adds.submit()
            try:
                found = dialect.decode(buffer[frame[0] : frame[1]])
            except ProtocolError:
                if dialect is self._older:
                    raise
                self._dialect = self._older
                continue
            if isinstance(found, bytes):
                self.answer(found)
            elif not self._handle_request(RequestContext(found[0], self, dialect, found[1])):
                return
            self._position = frame[1]
            self._end_turn(None if isinstance(found, bytes) else found[0])

    def _pass_over(self, frame: OversizedFrame, buffer: bytes, position: int) -> int:
        """Drop the buffered part of a frame over the limit, and refuse the frame once its ids are known. Returns where the part ends.

        Raises:
            FrameTooLarge: the frame is no add, so there is no request to answer.
        """
        position = frame.pass_over(buffer, position)
        if not frame.refused and (frame.has_head or not may_be_add(frame.head)):
            self._refuse_oversized(frame)
        if not frame.left_bytes:
            self._oversized = None
        return position

    def _refuse_oversized(self, frame: OversizedFrame) -> None:
        limit = self._settings.frame_limit_bytes
        add = self._dialect.oversized_add(frame.head) if frame.has_head else None
        if add is None and frame.has_head and self._dialect is not self._older:
            self._dialect = self._older
            add = self._dialect.oversized_add(frame.head)
        if add is None:
            raise FrameTooLarge(f"a frame of {frame.size_bytes} bytes exceeds the limit of {limit}, and is no add that could be refused")
        self._host.trace(
            "bookie.add_too_large",
            peer=self.peer,
            ledger_id=add.ledger_id,
            entry_id=add.entry_id,
            size_bytes=frame.size_bytes,
            limit_bytes=limit,
        )
        self._metrics.adds_too_large.inc()
        frame.refused = True
        self.answer(add.refusal)

    def _handle_request(self, asked: RequestContext) -> bool:
        """Handle one request. Returns False when it must wait for its ledger."""
        request = asked.request
        ledger_id = ledger_of(request)
        if ledger_id is not None:
            handle = self._storage.ledgers.get(ledger_id)
            if ledger_id < 0:
                # Negative ids name no ledger, and none is created.
                if changes_ledger(request):
                    asked.refuse(Status.BAD_REQUEST)
                    return True
                handle = LedgerHandle(ledger_id)
            if handle is None:
                if self._load(ledger_id):
                    return False
                asked.refuse(Status.IO_ERROR)
                return True
            asked.handle = handle
        if isinstance(request, AddRequest):
            self._adds.admit_one(asked, request)
        else:
            self._requests.handle(asked)
        return True

    def _wait_for_room(self) -> None:
        """After an add: stop reading while storage is crowded. A read-only bookie refuses adds, so the connection stays open for reads."""
        if self._storage.crowded and not self._requests.read_only:
            self._hold("storage is full")
            self._storage.call_when_room(self, self._room_again)

    def _room_again(self) -> None:
        self._release("storage is full")

    def _wait_for_journal(self) -> None:
        """Fences and forces add no entry and proceed while adds wait. They stop when the journal is twice as far behind."""
        if self._transport is None:
            return
        if self._requests.journals_behind:
            self._hold("journal is full")
            self._host.clock.call_at(self._host.clock.monotonic() + JOURNAL_CHECK_S, self._wait_for_journal)
        else:
            self._release("journal is full")

    def _end_turn(self, request: Request | None) -> None:
        """Decide after a request whether the peer is still read. `request`: None if it was answered at once."""
        self._turn_requests += 1
        if isinstance(request, AddRequest | WriteLacRequest):
            self._wait_for_room()
        elif request is not None and is_journaled(request):
            self._wait_for_journal()
        if len(self.reads) >= self._settings.reads_outstanding:
            self._hold("reads wait")
        elif self.reads and self._requests.reads.full:
            # A connection without outstanding reads may submit one, so every connection progresses.
            self._hold("reads wait")
            self._requests.reads.call_when_room(self)
        elif self._turn_bytes >= self._settings.read_turn_bytes or self._turn_requests >= self._settings.turn_requests:
            # Other connections are served before this one continues.
            self._hold("turn is over")
            self._host.clock.call_at(self._host.clock.monotonic(), self._release, "turn is over")

    def reads_done(self) -> None:
        if len(self.reads) >= self._settings.reads_outstanding:
            return
        if self.reads and self._requests.reads.full:
            self._requests.reads.call_when_room(self)
        else:
            self._release("reads wait")

    def _load(self, ledger_id: int) -> bool:
        """Load a ledger's state. The connection then continues with the same frame, so its requests keep their order.

        Returns:
            False if loading has just failed. Nothing is known about the ledger, so the answer is an I/O error, never "no ledger".
        """
        if self._unreadable == ledger_id:
            self._unreadable = None
            return False
        self._hold("ledger is loaded")
        if self._scope.closing:
            # The bookie is stopping, and no task would continue with this frame.
            self.close()
            return True
        self._scope.spawn(self._load_and_go_on(ledger_id), name="load")
        return True

    async def _load_and_go_on(self, ledger_id: int) -> None:
        try:
            await self._storage.load(ledger_id)
        except (CorruptionError, FormatError, OSError) as error:
            self._metrics.damaged_reads.inc()
            self._host.trace("bookie.ledger_unreadable", ledger_id=ledger_id, error=str(error))
            self._unreadable = ledger_id
        self._release("ledger is loaded")

    # Answers.

    def answer(self, data: bytes) -> None:
        """Send whole frames. Nothing is sent on a connection that is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def respond(self, response: Response, frame: bytes) -> None:
        """Send the answer to a single request."""
        size = len(frame)
        self._turn_bytes += size
        if isinstance(response, ReadResponse | BatchReadResponse | ReadLacResponse):
            self._metrics.read_requests.inc()
            self._metrics.reads_of[response.status].inc()
            self._metrics.read_bytes.inc(size)
        self.answer(frame)

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
