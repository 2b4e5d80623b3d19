"""The frames of one connection: decoded chunk by chunk, adds in runs, other requests one by one, each in the order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.add_processor import AddPeer, AddProcessor
from triplicate.bookie.server.budgets import FrameBudget, Receiving
from triplicate.bookie.server.dialects import Dialect, V2Dialect, V3Dialect
from triplicate.bookie.server.oversized_frame import OversizedFrame
from triplicate.bookie.server.request_context import Peer, RequestContext
from triplicate.bookie.server.request_processor import RequestProcessor, changes_ledger, ledger_of, reads, writes
from triplicate.config import BookieSettings
from triplicate.errors import FrameTooLarge, ProtocolError
from triplicate.runtime import Trace
from triplicate.security import FULL_RIGHTS, Rights
from triplicate.wire import AddRequest, FrameBuffer, Request, Status, excess_of, may_be_add, next_frame

SHORT_RUN = 4
"""After a run of adds shorter than this, the next adds are decoded one by one, since ledgers may alternate."""


@dataclass(slots=True)
class ServedShare:
    """How much one connection was served since its latest chunk. At a limit, other connections are served first."""

    bytes: int = 0
    """Of responses."""
    requests: int = 0


class FramePeer(AddPeer, Peer, Receiving, Protocol):
    """The connection that the frames came from."""

    @property
    def holds(self) -> Mapping[str, None]:
        """Reasons why no further frame is handled now; the same mapping for the connection's whole life."""

    def check_limits(self, request: Request | None) -> None:
        """Called after each request but adds in bulk. `request`: None if it was answered at once."""

    def wait_for_room(self) -> None:
        """Called after adds."""

    def lack_right(self, right: str, request: str, count: int) -> None:
        """Called where requests are refused because the peer lacks a right."""

    def load(self, ledger_id: int) -> Status | None:
        """Load a ledger's state, and process the same frame again afterwards.

        Returns:
            None; if loading has just failed, the status of the answer. Nothing is known about the ledger, so it is never "no ledger".
        """


class FrameProcessor:
    """See the module's text.

    Args:
        budget: memory that unfinished frames of all connections share.
        share: reset with each chunk.
    """

    def __init__(
        self, peer: FramePeer, settings: BookieSettings, requests: RequestProcessor, budget: FrameBudget, share: ServedShare, trace: Trace
    ) -> None:
        self._peer = peer
        self._holds = peer.holds
        self._settings = settings
        self._requests = requests
        self._storage = requests.storage
        self._budget = budget
        self._share = share
        self._trace = trace
        self._adds = AddProcessor(requests, peer, trace)
        self._older = V2Dialect()
        self._dialect: Dialect = V3Dialect(not settings.clients_before_4_15)
        """The peer's protocol: version 3 until the peer sends something else, then the older one for good."""
        self._frames = FrameBuffer(settings.frame_limit_bytes, settings.frame_excess_bytes)
        self._oversized: OversizedFrame | None = None
        """The current frame is over the limit; its bytes are dropped as they arrive."""
        self._buffer = b""
        self._position = 0
        self._rights = FULL_RIGHTS
        self._may_all = True
        """Whether the connection may do everything: the usual case, in which a request's right is not looked up."""
        self._alternating = False
        """The last run of adds was short and not the last of its chunk, so ledgers may alternate."""

    def limit(self, rights: Rights) -> None:
        """From now on the peer may do this."""
        self._rights = rights
        self._may_all = rights.are_full
        self._alternating = False

    def speak_older(self) -> None:
        """The peer has spoken version 2."""
        self._dialect = self._older

    def process(self, data: bytes) -> None:
        """Handle every whole frame, up to one behind which the connection is held; keep the rest. Closes the connection on bad input."""
        try:
            if self._oversized is not None:
                data = data[self._pass_over(self._oversized, data, 0) :]
                if not data:
                    return
            buffer, more, start = self._frames.feed_apart(data)
            if not buffer:
                self._budget.record(self._peer, self._frames.held_bytes, self._frames.wanted_bytes)
                return
            self._buffer, self._position = buffer, 0
            self._share.bytes = self._share.requests = 0
            if not self._holds:
                self._handle_frames()
            if more and self._position == len(buffer):
                self._buffer, self._position, more = more, start, b""
                if not self._holds:
                    self._handle_frames()
            self._adds.submit()
            if more:
                # The frame begun before is not complete, so the bytes after it wait too.
                self._buffer, self._position = self._buffer[self._position :] + more[start:], 0
            self._frames.keep(self._buffer, self._position)
            self._budget.record(self._peer, self._frames.held_bytes, self._frames.wanted_bytes)
        except (ProtocolError, FrameTooLarge) as error:
            self._adds.submit()
            self._trace("bookie.protocol_error", peer=self._peer.peer, error=str(error))
            self._peer.close()
        finally:
            self._buffer = b""

    def _handle_frames(self) -> None:
        buffer, limit = self._buffer, self._settings.frame_limit_bytes
        end = len(buffer)
        handles = self._storage.ledgers
        may_write = self._rights.may_write
        while self._position < end and not self._holds:
            dialect = self._dialect
            if self._alternating:
                self._alternating = False
                reached = self._adds.admit_alternating(buffer, self._position, end, limit)
                if reached > self._position:
                    self._position = reached
                    self._peer.wait_for_room()
                    continue
            adds = dialect.scan_adds(buffer, self._position, end, limit)
            if adds is not None:
                if not may_write:
                    self._adds.submit()
                    self._peer.lack_right("write", "AddRequest", len(adds.run.entry_ids))
                    self._adds.refuse(adds, dialect, Status.UNAUTHORIZED)
                    self._position = adds.end
                    self._peer.check_limits(None)
                    continue
                ledger_id = adds.run.ledger_id
                handle = handles.get(ledger_id)
                if handle is not None:
                    self._adds.admit(adds, dialect, handle)
                elif (refusal := self._peer.load(ledger_id)) is not None:
                    self._adds.refuse(adds, dialect, refusal)
                else:
                    return
                self._position = adds.end
                self._alternating = dialect is self._older and adds.end < end and len(adds.run.entry_ids) < SHORT_RUN
                self._peer.wait_for_room()
                continue
            size = excess_of(buffer, self._position, end, limit, self._settings.frame_excess_bytes)
            if size:
                self._adds.submit()
                self._oversized = OversizedFrame(size)
                self._position = self._pass_over(self._oversized, buffer, self._position)
                self._peer.check_limits(None)
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
                self._peer.answer(found)
            elif not self._handle_request(RequestContext(found[0], self._peer, dialect, found[1])):
                return
            self._position = frame[1]
            self._peer.check_limits(None if isinstance(found, bytes) else found[0])

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
            raise FrameTooLarge(f"a frame of {frame.size_bytes} bytes passes the limit of {limit}, and is no add that could be refused")
        self._trace(
            "bookie.add_too_large",
            peer=self._peer.peer,
            ledger_id=add.ledger_id,
            entry_id=add.entry_id,
            size_bytes=frame.size_bytes,
            limit_bytes=limit,
        )
        self._requests.metrics.adds_too_large.inc()
        frame.refused = True
        self._peer.answer(add.refusal)

    def _handle_request(self, context: RequestContext) -> bool:
        """Handle one request. Returns False when it must wait for its ledger."""
        request = context.request
        if not self._may_all and not self._has_right(request):
            context.refuse(Status.UNAUTHORIZED)
            return True
        ledger_id = ledger_of(request)
        if ledger_id is not None:
            handle = self._storage.ledgers.get(ledger_id)
            if ledger_id < 0:
                # Negative ids name no ledger, and none is created.
                if changes_ledger(request):
                    context.refuse(Status.BAD_REQUEST)
                    return True
                handle = LedgerHandle(ledger_id)
            if handle is None:
                refusal = self._peer.load(ledger_id)
                if refusal is None:
                    return False
                context.refuse(refusal)
                return True
            context.handle = handle
        if isinstance(request, AddRequest):
            self._adds.admit_one(context, request)
        else:
            self._requests.handle(context)
        return True

    def _has_right(self, request: Request) -> bool:
        """Whether the peer may send this request. A fencing read needs the right to write: it ends the writer."""
        if writes(request):
            right, is_held = "write", self._rights.may_write
        else:
            right, is_held = "read", self._rights.may_read or not reads(request)
        if not is_held:
            self._peer.lack_right(right, type(request).__name__, 1)
        return is_held
