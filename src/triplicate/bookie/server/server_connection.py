"""One connection: the transport with its back-pressure. It stops reading when a resource is full; `FrameProcessor` handles the frames."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

from triplicate.bookie.server.budgets import FrameBudget
from triplicate.bookie.server.door import Door, Principal
from triplicate.bookie.server.frame_processor import FrameProcessor, ServedShare
from triplicate.bookie.server.request_context import RequestContext
from triplicate.bookie.server.request_processor import RequestProcessor, is_journaled
from triplicate.bookie.server.standing import Standing
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Host, TaskScope, close_transport
from triplicate.security import PeerCertificate, Rights, peer_certificate
from triplicate.wire import (
    AddRequest,
    BatchReadResponse,
    ReadLacResponse,
    ReadResponse,
    Request,
    Response,
    Status,
    WriteLacRequest,
)

if TYPE_CHECKING:
    import ssl


class Members(Protocol):
    """The open connections of a bookie."""

    def add(self, connection: ServerConnection) -> None:
        """The connection is made. It may be dropped at once."""

    def remove(self, connection: ServerConnection) -> None:
        """The connection is gone. Idempotent."""


class ChunkHandler(Protocol):
    """Handles what a connection receives: its doorkeeper, then its requests."""

    def process(self, data: bytes) -> None: ...


JOURNAL_CHECK_S = 0.02
"""Interval at which a connection that waits for a journal checks it."""


class ServerConnection(asyncio.Protocol):
    """A client.

    Args:
        frames: memory shared with the other connections. It changes the fields that begin with `frame_`.
        answers_bytes: while the peer leaves more than this unread, the connection is not read and gets no answers to reads.
        members: the open connections, which it joins and leaves.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        requests: RequestProcessor,
        scope: TaskScope,
        frames: FrameBudget,
        answers_bytes: int,
        door: Door,
        members: Members,
    ) -> None:
        self.reads: deque[RequestContext] = deque()
        self.peer = "?"
        self._host = host
        self._settings = settings
        self._requests = requests
        self._metrics = requests.metrics
        self._scope = scope
        self._members = members
        self._transport: asyncio.Transport | None = None
        self._budget = frames
        self._answers_bytes = answers_bytes
        self.frame_held = 0
        self.frame_reserved = 0
        self.frame_since = 0.0
        self.holds: dict[str, None] = {}
        """Reasons why the connection is not read now."""
        self._not_loaded: tuple[int, Status] | None = None
        """The ledger whose state could not be read for the current frame."""
        self._share = ServedShare()
        self._frames = FrameProcessor(self, settings, requests, frames, self._share, host.trace)
        self._standing = Standing(door, self)
        self._handler: ChunkHandler = self._standing.keeper or self._frames

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._answers_bytes)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else str(name)
        self._metrics.connections.inc()
        self._members.add(self)
        if not transport.is_closing():
            self._standing.begin()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._budget.forget(self)
        self._requests.storage.forget_waiter(self)
        self._metrics.connections.dec()
        self._requests.forget(self)
        self._standing.end()
        self._members.remove(self)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self._handler.process(data)

    def pause_writing(self) -> None:
        self._hold("peer does not read")

    def resume_writing(self) -> None:
        self._requests.reads.wake()
        self._release("peer does not read")

    # The door, for `Doorkeeper`.

    @property
    def address(self) -> str:
        """The host that the connection comes from."""
        return self.peer.rpartition(":")[0]

    def admit(self, principal: Principal, is_older: bool, rest: bytes) -> None:
        """The connection may send requests from now on. `rest`: bytes that it has sent already. `is_older`: it speaks version 2."""
        self._handler = self._frames
        self._standing.admit(principal)
        self._frames.limit(principal.rights)
        if is_older:
            self._frames.speak_older()
        self.data_received(rest)

    def change_rights(self, rights: Rights) -> None:
        """From now on the connection may do this."""
        self._frames.limit(rights)

    def lack_right(self, right: str, request: str, count: int) -> None:
        """Requests are refused for want of a right."""
        self._standing.lack_right(right, request, count)

    @property
    def certificate(self) -> PeerCertificate | None:
        """The certificate of the peer's TLS handshake."""
        return peer_certificate(self._transport) if self._transport is not None else None

    def while_held(self, reason: str, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run `work` in a task; meanwhile no frame is handled."""
        self._hold(reason)
        if self._scope.closing:
            # The bookie is stopping.
            self.close()
            return
        self._scope.spawn(self._work_and_go_on(reason, work()), name=name)

    async def _work_and_go_on(self, reason: str, work: Coroutine[Any, Any, None]) -> None:
        await work
        self._release(reason)

    async def secure(self, context: ssl.SSLContext, limit_s: float) -> None:
        """Protect the connection by TLS. No request is outstanding.

        Raises:
            OSError: the handshake failed, took too long, or the peer has left. The connection is gone.
        """
        plain = self._transport
        if plain is None:
            raise ConnectionResetError("the client left before the TLS handshake")
        try:
            protected = await self._host.network.start_tls(plain, self, context, limit_s=limit_s, server_name=None)
        except BaseException:
            # asyncio may not call `connection_lost` for a loss during the handshake.
            self.connection_lost(None)
            raise
        self._transport = protected
        protected.set_write_buffer_limits(high=self._answers_bytes)

    # Shared memory.

    @property
    def is_read(self) -> bool:
        return self._transport is not None and not self.holds

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
        return self._transport is not None and "peer does not read" not in self.holds

    @property
    def is_gone(self) -> bool:
        return self._transport is None

    def _hold(self, reason: str) -> None:
        if self._transport is None or reason in self.holds:
            return
        self._metrics.blocked.labels(reason).inc()
        if not self.holds:
            self._transport.pause_reading()
        self.holds[reason] = None

    def _release(self, reason: str) -> None:
        if reason in self.holds:
            del self.holds[reason]
            if not self.holds and self._transport is not None:
                # Buffered frames come first; they may pause the connection again.
                self.data_received(b"")
                if not self.holds and self._transport is not None:
                    self._transport.resume_reading()

    # Limits and loading, for `FrameProcessor`.

    def wait_for_room(self) -> None:
        """After an add: stop reading while storage is crowded. A read-only bookie refuses adds, so the connection stays open for reads."""
        if self._requests.storage.crowded and not self._requests.read_only:
            self._hold("storage is full")
            self._requests.storage.call_when_room(self, self._room_again)

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

    def check_limits(self, request: Request | None) -> None:
        """Decide after a request whether the peer is still read. `request`: None if it was answered at once."""
        self._share.requests += 1
        if isinstance(request, AddRequest | WriteLacRequest):
            self.wait_for_room()
        elif request is not None and is_journaled(request):
            self._wait_for_journal()
        if len(self.reads) >= self._settings.reads_outstanding:
            self._hold("reads wait")
        elif self.reads and self._requests.reads.full:
            # A connection without outstanding reads may submit one, so every connection progresses.
            self._hold("reads wait")
            self._requests.reads.call_when_room(self)
        elif self._share.bytes >= self._settings.read_turn_bytes or self._share.requests >= self._settings.turn_requests:
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

    def load(self, ledger_id: int) -> Status | None:
        """Load a ledger's state. The connection then continues with the same frame, so its requests keep their order.

        Returns:
            None; if loading has just failed, the status of the answer. Nothing is known about the ledger, so it is never "no ledger".
        """
        if self._not_loaded is not None and self._not_loaded[0] == ledger_id:
            (_, status), self._not_loaded = self._not_loaded, None
            return status
        self._hold("ledger is loaded")
        if self._scope.closing:
            # The bookie is stopping, and no task would continue with this frame.
            self.close()
            return None
        self._scope.spawn(self._load_and_go_on(ledger_id), name="load")
        return None

    async def _load_and_go_on(self, ledger_id: int) -> None:
        try:
            await self._requests.storage.load(ledger_id)
        except (CorruptionError, FormatError, OSError) as error:
            # Want of memory says nothing about the disks: an I/O error would count as a damaged copy.
            crowded = isinstance(error, OSError) and error.errno == errno.ENOBUFS
            if not crowded:
                self._metrics.damaged_reads.inc()
            self._host.trace("bookie.ledger_unreadable", ledger_id=ledger_id, error=str(error))
            self._not_loaded = ledger_id, Status.TOO_MANY_REQUESTS if crowded else Status.IO_ERROR
        self._release("ledger is loaded")

    # Answers.

    def answer(self, data: bytes) -> None:
        """Send whole frames. Nothing is sent on a connection that is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def respond(self, response: Response, frame: bytes) -> None:
        """Send the answer to a single request."""
        size = len(frame)
        self._share.bytes += size
        if isinstance(response, ReadResponse | BatchReadResponse | ReadLacResponse):
            self._metrics.read_requests.inc()
            self._metrics.reads_of[response.status].inc()
            self._metrics.read_bytes.inc(size)
        self.answer(frame)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            close_transport(self._transport)
