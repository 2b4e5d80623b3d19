"""Reads beyond the write cache: queued per connection, done on the reader's worker, answered in portions."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from triplicate.bookie.ledgers import LedgerHandle
from triplicate.bookie.metrics import BookieMetrics
from triplicate.bookie.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError
from triplicate.ledger import encode_availability
from triplicate.runtime import Host
from triplicate.wire import (
    LAST_ENTRY,
    BatchReadRequest,
    BatchReadResponse,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Status,
)

ReadingRequest = ReadRequest | BatchReadRequest | ReadLacRequest | ListEntriesRequest
ReadingResponse = ReadResponse | BatchReadResponse | ReadLacResponse | ListEntriesResponse

BATCH_HEAD_BYTES = 24 + 8 + 4
"""What BookKeeper reckons for a batch read's answer before the first entry."""
PORTION_REQUESTS = 64
REQUESTS_PER_PEER = 16


class Reader(Protocol):
    """A connection that reads. `reads` is its queue here."""

    reads: deque[tuple[ReadingRequest, LedgerHandle]]

    @property
    def takes_answers(self) -> bool:
        """False while the peer does not take what it was sent, or the connection is closed."""

    @property
    def is_gone(self) -> bool:
        """The connection is closed: nobody waits for answers."""

    def respond(self, response: ReadingResponse) -> None: ...

    def reads_done(self) -> None:
        """Called when its queue has become shorter."""


class Reads:
    """Answers reads. The same code runs on the loop when everything is in the cache and on the reader's worker when it is not."""

    def __init__(self, host: Host, storage: Storage, settings: BookieSettings, metrics: BookieMetrics) -> None:
        self._host = host
        self._storage = storage
        self._settings = settings
        self._metrics = metrics
        self._peers: dict[int, Reader] = {}
        self._wanted = asyncio.Event()

    # On the loop.

    def cached(self, request: ReadingRequest, handle: LedgerHandle) -> ReadingResponse | None:
        """The answer if it needs no disk, else None."""
        if isinstance(request, ListEntriesRequest):
            return None if handle.exists else ListEntriesResponse(Status.NO_LEDGER, request.ledger_id)
        wanted = _first_entry(request, handle)
        if handle.exists and 0 <= wanted <= handle.last_entry_id:
            if self._storage.cache.get(handle.ledger_id, wanted) is None:
                return None
            if isinstance(request, BatchReadRequest):
                # The entries after the first may be on disk; the worker looks for all of them.
                return None
        return self.answer(request, handle)

    def queue(self, peer: Reader, request: ReadingRequest, handle: LedgerHandle) -> None:
        """Answer later, by `peer.respond`."""
        peer.reads.append((request, handle))
        self._peers[id(peer)] = peer
        self._wanted.set()

    def forget(self, peer: Reader) -> None:
        """The connection is gone."""
        peer.reads.clear()
        self._peers.pop(id(peer), None)

    def wake(self) -> None:
        """A connection takes answers again."""
        self._wanted.set()

    async def run(self) -> None:
        """Serve the queues, fairly, one portion per turn of the loop."""
        while True:
            portion = self._portion()
            if not portion:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            answers: list[ReadingResponse] = []

            def work(portion: list[tuple[Reader, ReadingRequest, LedgerHandle]] = portion, into: list[ReadingResponse] = answers) -> None:
                size = 0
                for _, request, handle in portion:
                    response = self.answer(request, handle)
                    into.append(response)
                    size += _size_of(response)
                    if size >= self._settings.read_turn_bytes:
                        break

            await self._storage.on_reader(work)
            for (peer, _, _), response in zip(portion, answers, strict=False):
                peer.respond(response)
            for peer, request, handle in reversed(portion[len(answers) :]):
                # A peer that just does not take answers is owed them all the same.
                if not peer.is_gone:
                    peer.reads.appendleft((request, handle))
                    self._peers[id(peer)] = peer
            for peer in {id(peer): peer for peer, _, _ in portion}.values():
                peer.reads_done()

    def _portion(self) -> list[tuple[Reader, ReadingRequest, LedgerHandle]]:
        portion: list[tuple[Reader, ReadingRequest, LedgerHandle]] = []
        for key, peer in list(self._peers.items()):
            if not peer.takes_answers:
                continue
            for _ in range(min(REQUESTS_PER_PEER, len(peer.reads), PORTION_REQUESTS - len(portion))):
                request, handle = peer.reads.popleft()
                portion.append((peer, request, handle))
            # Who was served goes behind the others.
            del self._peers[key]
            if peer.reads:
                self._peers[key] = peer
            if len(portion) >= PORTION_REQUESTS:
                break
        return portion

    # On the loop or on the reader's worker.

    def answer(self, request: ReadingRequest, handle: LedgerHandle) -> ReadingResponse:
        """The complete answer. Damaged files are IO_ERROR, which everybody takes as unknown; never 'no such entry'."""
        try:
            if isinstance(request, ReadRequest):
                return self._read(request, handle)
            if isinstance(request, BatchReadRequest):
                return self._batch(request, handle)
            if isinstance(request, ReadLacRequest):
                return self._read_lac(request, handle)
            return self._list(request, handle)
        except (CorruptionError, FormatError, OSError) as error:
            self._metrics.damaged_reads.inc()
            self._host.trace("bookie.damaged_read", ledger_id=handle.ledger_id, request=type(request).__name__, error=str(error))
            return refusal(request, Status.IO_ERROR)

    def _entry(self, handle: LedgerHandle, entry_id: int) -> tuple[Status, bytes | None]:
        if not handle.exists:
            return Status.NO_LEDGER, None
        if entry_id < 0:
            return Status.NO_ENTRY, None
        body = self._storage.read(handle.ledger_id, entry_id) if entry_id <= handle.last_entry_id else None
        if body is not None:
            return Status.OK, body
        return (Status.UNKNOWN_LEDGER_STATE if handle.limbo else Status.NO_ENTRY), None

    def _read(self, request: ReadRequest, handle: LedgerHandle) -> ReadResponse:
        status, body = self._entry(handle, _first_entry(request, handle))
        max_lac = None
        if status is Status.OK and not request.fence:
            max_lac = max(handle.max_lac, _lac_of(body))
        return ReadResponse(status, request.ledger_id, request.entry_id, body, max_lac=max_lac)

    def _batch(self, request: BatchReadRequest, handle: LedgerHandle) -> BatchReadResponse:
        status, body = self._entry(handle, request.start_entry_id)
        if body is None:
            return BatchReadResponse(status, request.ledger_id, request.start_entry_id, request.request_id)
        limit = self._settings.batch_read_bytes
        budget = min(request.max_bytes, limit) if request.max_bytes > 0 else limit
        count = request.max_count if request.max_count > 0 else 1 << 62
        bodies: list[bytes] = []
        size = BATCH_HEAD_BYTES
        entry_id = request.start_entry_id
        while body is not None and len(bodies) < count:
            size += len(body) + 4
            if bodies and size > budget:
                break
            bodies.append(body)
            entry_id += 1
            try:
                _, body = self._entry(handle, entry_id)
            except (CorruptionError, FormatError, OSError) as error:
                # The entries before it are good; who asks for this one by itself hears of the damage.
                self._host.trace("bookie.damaged_read", ledger_id=handle.ledger_id, entry_id=entry_id, error=str(error))
                break
        return BatchReadResponse(Status.OK, request.ledger_id, request.start_entry_id, request.request_id, tuple(bodies))

    def _read_lac(self, request: ReadLacRequest, handle: LedgerHandle) -> ReadLacResponse:
        status, body = self._entry(handle, handle.last_entry_id)
        if body is None and handle.explicit_lac is None:
            return ReadLacResponse(Status.NO_ENTRY if status is Status.NO_LEDGER else status, request.ledger_id)
        return ReadLacResponse(Status.OK, request.ledger_id, handle.explicit_lac, body)

    def _list(self, request: ListEntriesRequest, handle: LedgerHandle) -> ListEntriesResponse:
        if not handle.exists:
            return ListEntriesResponse(Status.NO_LEDGER, request.ledger_id)
        if handle.limbo:
            return ListEntriesResponse(Status.UNKNOWN_LEDGER_STATE, request.ledger_id)
        ids = self._storage.cache.ids(handle.ledger_id) | self._storage.stored.entry_ids(handle.ledger_id)
        return ListEntriesResponse(
            Status.OK, request.ledger_id, encode_availability([range(entry_id, entry_id + 1) for entry_id in sorted(ids)])
        )


def refusal(request: ReadingRequest, status: Status) -> ReadingResponse:
    """An answer without content."""
    if isinstance(request, ReadRequest):
        return ReadResponse(status, request.ledger_id, request.entry_id)
    if isinstance(request, BatchReadRequest):
        return BatchReadResponse(status, request.ledger_id, request.start_entry_id, request.request_id)
    if isinstance(request, ReadLacRequest):
        return ReadLacResponse(status, request.ledger_id)
    return ListEntriesResponse(status, request.ledger_id)


def _first_entry(request: ReadingRequest, handle: LedgerHandle) -> int:
    if isinstance(request, BatchReadRequest):
        return request.start_entry_id
    if isinstance(request, ReadRequest) and request.entry_id != LAST_ENTRY:
        return request.entry_id
    return handle.last_entry_id


def _lac_of(body: bytes | None) -> int:
    return int.from_bytes(body[16:24], "big", signed=True) if body is not None else -1


def _size_of(response: ReadingResponse) -> int:
    if isinstance(response, ReadResponse):
        return len(response.body or b"")
    if isinstance(response, BatchReadResponse):
        return sum(map(len, response.bodies))
    if isinstance(response, ListEntriesResponse):
        return len(response.availability or b"")
    return len(response.last_entry_body or b"")
