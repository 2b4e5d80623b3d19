"""One connection: whole frames of each chunk in one loop, adds as one piece to the journal, holding back when something is full."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from triplicate.bookie.core.journal import GroupType
from triplicate.bookie.journal import Journal, JournalItem
from triplicate.bookie.ledgers import LedgerHandle
from triplicate.bookie.reads import ReadingRequest, ReadingResponse
from triplicate.bookie.requests import Requests
from triplicate.bookie.storage import entries_of
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError, FrameTooLarge, ProtocolError
from triplicate.runtime import Host, TaskScope
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AddRun,
    BatchReadResponse,
    FrameBuffer,
    ReadLacResponse,
    ReadResponse,
    Response,
    Status,
    UnsupportedVersion,
    decode_request,
    encode_add_responses,
    encode_request,
    encode_response,
    next_frame,
    scan_adds,
)

WRITE_BUFFER_BYTES = 4 * 1024 * 1024
"""A connection whose peer leaves more than this unread is not read and gets no answers to reads until it has caught up."""


class _Region:
    """Consecutive accepted adds of one chunk, to be journaled as one slice of it."""

    __slots__ = ("answers", "count", "end", "journal", "start")

    def __init__(self, journal: Journal, start: int) -> None:
        self.journal = journal
        self.start = start
        self.end = start
        self.count = 0
        self.answers: list[bytes] = []


class Connection(asyncio.Protocol):
    """A client.

    Args:
        closed: called when the connection is gone.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        requests: Requests,
        scope: TaskScope,
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
    ) -> None:
        self.reads: deque[tuple[ReadingRequest, LedgerHandle]] = deque()
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
        self._frames = FrameBuffer(settings.frame_limit_bytes)
        self._held: dict[str, None] = {}
        """Why the connection is not read just now."""
        self._buffer = b""
        self._position = 0
        self._region: _Region | None = None
        self._turn_bytes = 0
        self._unreadable: int | None = None
        """The ledger whose state could not be read for the frame at hand."""

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else str(name)
        self._metrics.connections.inc()
        self._opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._metrics.connections.dec()
        self._requests.reads.forget(self)
        self._closed(self)

    def data_received(self, data: bytes) -> None:
        self._run(data)

    def pause_writing(self) -> None:
        self._hold("peer does not read")

    def resume_writing(self) -> None:
        self._requests.reads.wake()
        self._release("peer does not read")

    # Holding back.

    @property
    def takes_answers(self) -> bool:
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
                # What is here already comes first; it may hold the connection back again.
                self._run(b"")
                if not self._held and self._transport is not None:
                    self._transport.resume_reading()

    # Frames.

    def _run(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            buffer = self._frames.feed(data)
            if not buffer:
                return
            self._buffer, self._position, self._turn_bytes = buffer, 0, 0
            if not self._held:
                self._handle_frames()
            self._submit_region()
            self._frames.keep(self._buffer, self._position)
        except (ProtocolError, FrameTooLarge) as error:
            self._submit_region()
            self._host.trace("bookie.protocol_error", peer=self.peer, error=str(error))
            self.close()
        finally:
            self._buffer = b""

    def _handle_frames(self) -> None:
        buffer, limit = self._buffer, self._settings.frame_limit_bytes
        end = len(buffer)
        handles = self._storage.ledgers
        while self._position < end and not self._held:
            run = scan_adds(buffer, self._position, end, limit)
            if run is not None:
                handle = handles.get(run.ledger_id)
                if handle is not None:
                    self._add_run(run, handle)
                elif not self._load(run.ledger_id):
                    self._refuse(run.ledger_id, run.entry_ids, Status.IO_ERROR)
                else:
                    return
                self._position = run.offsets[-1]
                if self._storage.crowded:
                    self._hold("storage is full")
                    self._storage.when_room(lambda: self._release("storage is full"))
                continue
            frame = next_frame(buffer, self._position, end, limit)
            if frame is None:
                return
            self._submit_region()
            if not self._handle_frame(buffer[frame[0] : frame[1]]):
                return
            self._position = frame[1]

    def _handle_frame(self, body: bytes) -> bool:
        """One request by itself; False when it must wait for its ledger."""
        try:
            request = decode_request(body)
        except UnsupportedVersion as error:
            if error.answer is None:
                raise
            self.send(error.answer)
            return True
        ledger_id = self._requests.ledger_of(request)
        handle = None
        if ledger_id is not None:
            if ledger_id < 0:
                raise ProtocolError(f"ledger id {ledger_id} is negative")
            handle = self._storage.ledgers.get(ledger_id)
            if handle is None:
                if self._load(ledger_id):
                    return False
                self._requests.refuse(request, self, Status.IO_ERROR)
                return True
        self._requests.handle(request, self, handle)
        if len(self.reads) >= self._settings.reads_outstanding:
            self._hold("reads wait")
        elif self._turn_bytes >= self._settings.read_turn_bytes:
            # Others have their turn before this reader goes on.
            self._hold("turn is over")
            self._host.clock.call_at(self._host.clock.monotonic(), self._release, "turn is over")
        return True

    def reads_done(self) -> None:
        if len(self.reads) < self._settings.reads_outstanding:
            self._release("reads wait")

    def _load(self, ledger_id: int) -> bool:
        """Fetch a ledger's state; the connection goes on with the same frame then, so its requests keep their order.

        False when that has just failed: nothing is known about the ledger, so the answer is an I/O error, never "no ledger".
        """
        if self._unreadable == ledger_id:
            self._unreadable = None
            return False
        self._hold("ledger is loaded")
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

    # Adds.

    def _add_run(self, run: AddRun, handle: LedgerHandle) -> None:
        status = self._requests.admit(handle, run.master_key, recovery=run.recovery, high_priority=run.high_priority)
        if status is not Status.OK:
            self._refuse(run.ledger_id, run.entry_ids, status)
            return
        entries = entries_of(self._buffer, run.offsets)
        checks = self._requests.checks
        if handle.verifier is not None:
            if not handle.verifier.verify_all(entries):
                self._add_verified(run, handle, entries)
                return
        elif checks.enabled:
            self._metrics.unverified.inc(len(entries))
        self._accept(handle, run, 0, len(entries), entries)

    def _accept(self, handle: LedgerHandle, run: AddRun, first: int, last: int, entries: list[bytes]) -> None:
        """Store the entries `first` to `last` - 1 of a run and make their bytes part of the region."""
        journal = self._storage.journal_of(handle.ledger_id)
        start, end = run.offsets[first], run.offsets[last]
        region = self._region
        if region is None or region.journal is not journal or region.end != start:
            self._submit_region()
            region = self._region = _Region(journal, start)
        ids = run.entry_ids if last - first == len(run.entry_ids) else run.entry_ids[first:last]
        self._storage.store(handle, ids, entries if len(entries) == len(ids) else entries[first:last], run.last_add_confirmed)
        region.end = end
        region.count += len(ids)
        region.answers.append(encode_add_responses(handle.ledger_id, ids))

    def _add_verified(self, run: AddRun, handle: LedgerHandle, entries: list[bytes]) -> None:
        """At least one digest is wrong: take the others one by one."""
        verifier = handle.verifier
        assert verifier is not None
        for index, entry in enumerate(entries):
            if not verifier.verify(entry):
                self._metrics.digest_mismatches.inc()
                self._host.trace(
                    "bookie.digest_mismatch", ledger_id=run.ledger_id, entry_id=run.entry_ids[index], peer=self.peer, size_bytes=len(entry)
                )
                if self._requests.checks.refuses:
                    self._refuse(run.ledger_id, [run.entry_ids[index]], Status.IO_ERROR)
                    continue
            self._accept(handle, run, index, index + 1, entries)

    def _refuse(self, ledger_id: int, entry_ids: list[int], status: Status) -> None:
        self._metrics.add_requests.inc(len(entry_ids))
        self._metrics.adds.labels(status.name).inc(len(entry_ids))
        if status is Status.TOO_MANY_REQUESTS:
            self._metrics.adds_refused.inc(len(entry_ids))
        self.answer(encode_add_responses(ledger_id, entry_ids, status))

    def _submit_region(self) -> None:
        region, self._region = self._region, None
        if region is None:
            return
        buffer = self._buffer
        data = buffer if region.start == 0 and region.end == len(buffer) else buffer[region.start : region.end]
        answers = region.answers[0] if len(region.answers) == 1 else b"".join(region.answers)
        self._metrics.add_requests.inc(region.count)
        item = JournalItem(GroupType.ENTRIES, [data], len(data), region.count, self, answers)
        try:
            region.journal.submit(item)
        except OSError:
            # The journal is dead and the bookie is stopping: no answer, so the outcome is unknown.
            self.close()

    def add(self, request: AddRequest, handle: LedgerHandle) -> None:
        """An add by itself, which the bulk scan left: version 0 or 1, or an id that no entry can have."""
        if request.entry_id < 0:
            self.send(AddResponse(Status.BAD_REQUEST, request.ledger_id, request.entry_id))
            return
        status = self._requests.admit(handle, request.master_key, recovery=request.recovery, high_priority=request.high_priority)
        if status is Status.OK and handle.verifier is not None and not handle.verifier.verify(request.body):
            self._metrics.digest_mismatches.inc()
            status = Status.IO_ERROR if self._requests.checks.refuses else Status.OK
        if status is not Status.OK:
            self.send(AddResponse(status, request.ledger_id, request.entry_id))
            return
        # The journal knows only the current form of v2, so the packet is made anew.
        frame = encode_request(AddRequest(request.ledger_id, request.entry_id, request.master_key, request.body, request.recovery))
        self._storage.store(handle, [request.entry_id], [request.body], int.from_bytes(request.body[16:24], "big", signed=True))
        answer = encode_response(AddResponse(Status.OK, request.ledger_id, request.entry_id))
        self._metrics.add_requests.inc()
        try:
            self._storage.journal_of(request.ledger_id).submit(JournalItem(GroupType.ENTRIES, [frame], len(frame), 1, self, answer))
        except OSError:
            self.close()

    # Answers.

    def answer(self, data: bytes) -> None:
        """Send whole frames. Nothing is sent on a connection that is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def respond(self, response: ReadingResponse) -> None:
        """Answer a read."""
        frame = encode_response(response)
        size = len(frame)
        self._turn_bytes += size
        self._metrics.read_requests.inc()
        self._metrics.reads.labels(response.status.name).inc()
        if isinstance(response, ReadResponse | BatchReadResponse | ReadLacResponse):
            self._metrics.read_bytes.inc(size)
        self.answer(frame)

    def send(self, response: Response) -> None:
        self.answer(encode_response(response))

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
