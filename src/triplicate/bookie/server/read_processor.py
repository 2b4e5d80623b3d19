"""Reads that miss the write cache: queued per connection, done on the reader's worker, answered in portions, and throttled while adds
arrive.

Reads that the write cache can answer are answered at once, so tailing readers are never delayed. Of the others, recovery reads and reads
for the end of a ledger are not throttled.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from functools import partial
from heapq import merge
from operator import attrgetter

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.entry_log_format import consecutive
from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.read_throttle import ReadThrottle
from triplicate.bookie.server.request_context import Peer, RequestContext
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError
from triplicate.ledger import encode_availability
from triplicate.runtime import Host
from triplicate.wire import (
    LAST_ENTRY,
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    BatchReadRequest,
    BatchReadResponse,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    v3,
)

SIZE_FIELD = struct.Struct(">I")
BATCH_HEAD_BYTES = 24 + 8 + 4
"""Bytes that BookKeeper counts for a batch-read response before the first entry."""
LIST_ENVELOPE_BYTES = LENGTH_BYTES + 64
"""Bytes around the list of entries in a response."""
CACHED_BATCH_ENTRIES = 1024
"""Maximum number of entries in a response that is built in one loop iteration."""
NEAR_THE_END_ENTRIES = 1024
"""A reader at most this far behind the last entry of a growing ledger is tailing, not catching up."""
PORTION_REQUESTS = 64
REQUESTS_PER_PEER = 16


class ReadProcessor:
    """Answers reads. The same code runs on the loop when everything is in the cache and on the reader's worker when it is not."""

    def __init__(self, host: Host, storage: Storage, settings: BookieSettings, metrics: BookieMetrics) -> None:
        self._host = host
        self._storage = storage
        self._settings = settings
        self._metrics = metrics
        self._peers: dict[int, Peer] = {}
        self._urgent: dict[int, int] = {}
        """Number of urgent reads, by connection."""
        self._outstanding = 0
        self._held: dict[int, Peer] = {}
        """Connections that are not read until fewer reads are outstanding."""
        metrics.reads_outstanding.set_function(lambda: self._outstanding)
        self._wanted = asyncio.Event()
        self._throttle = ReadThrottle(host.clock, storage.journals, settings)

    # On the loop.

    def serve(self, context: RequestContext) -> None:
        """Answer at once if that needs no disk, else later; in both cases by `asked.answer`."""
        response = self._cached(context) if context.peer.accepts_answers else None
        if response is not None:
            context.answer(response)
            return
        peer = context.peer
        if not peer.is_gone:
            context.urgent = self._is_urgent(context)
            peer.reads.append(context)
            self._note(peer, [context])
            self._peers[id(peer)] = peer
            self._wanted.set()
            if context.urgent and peer.accepts_answers:
                self._throttle.end_pause()

    def _note(self, peer: Peer, reads: Iterable[RequestContext], sign: int = 1) -> None:
        """Count reads as outstanding; with `sign` -1 as no longer outstanding."""
        key, urgent = id(peer), 0
        for context in reads:
            self._outstanding += sign
            urgent += context.urgent
        if urgent:
            self._urgent[key] = self._urgent.get(key, 0) + sign * urgent
            if not self._urgent[key]:
                del self._urgent[key]

    @property
    def _is_urgent_ready(self) -> bool:
        """Whether an urgent read can be answered."""
        return bool(self._urgent) and any(key in self._urgent and peer.accepts_answers for key, peer in self._peers.items())

    def _cached(self, context: RequestContext) -> Response | None:
        """The answer if it needs no disk, else None."""
        request, handle = context.request, context.ledger
        if isinstance(request, ListEntriesRequest):
            return None if handle.exists or handle.limbo else v3.refusal_of(request, Status.NO_LEDGER)
        wanted = _first_entry(request, handle)
        if handle.exists and 0 <= wanted <= handle.last_entry_id:
            if self._storage.cache.get(handle.ledger_id, wanted) is None:
                return None
            if isinstance(request, BatchReadRequest):
                return self._cached_batch(request, handle)
        return self.answer(context, self._throttle.batch_bytes)

    def _cached_batch(self, request: BatchReadRequest, handle: LedgerHandle) -> BatchReadResponse | None:
        """The answer if all entries are in the cache, else None: a missing entry may be on disk."""
        budget = min(request.max_bytes, self._throttle.batch_bytes_at_once)
        wanted = min(request.max_count, CACHED_BATCH_ENTRIES) if request.max_count > 0 else CACHED_BATCH_ENTRIES
        stop = min(request.start_entry_id + wanted, handle.last_entry_id + 1)
        packed: list[bytes] = []
        size = BATCH_HEAD_BYTES
        for entry_id in range(request.start_entry_id, stop):
            body = self._storage.cache.get(handle.ledger_id, entry_id)
            if body is None:
                return None
            size += SIZE_FIELD.size + len(body)
            if packed and size > budget:
                break
            packed += (SIZE_FIELD.pack(len(body)), body)
        return BatchReadResponse(Status.OK, request.ledger_id, request.start_entry_id, request.request_id, packed=tuple(packed))

    def _is_urgent(self, context: RequestContext) -> bool:
        """Whether a read is not part of catching up: it is of a recovery, for the end of a ledger, or for a recent entry."""
        request, handle = context.request, context.ledger
        if isinstance(request, ListEntriesRequest):
            return False
        if isinstance(request, ReadLacRequest) or (isinstance(request, ReadRequest) and request.entry_id == LAST_ENTRY):
            return True
        if isinstance(request, ReadRequest | BatchReadRequest) and request.fence:
            return True
        wanted, cache = _first_entry(request, handle), self._storage.cache
        if cache.holds(handle.ledger_id) and handle.last_entry_id - wanted < NEAR_THE_END_ENTRIES:
            # A flush may just have released it.
            return True
        return cache.get(handle.ledger_id, wanted) is not None

    def forget(self, peer: Peer) -> None:
        """The connection is gone."""
        self._note(peer, peer.reads, -1)
        peer.reads.clear()
        self._peers.pop(id(peer), None)
        self._held.pop(id(peer), None)
        self._wake_held()

    @property
    def full(self) -> bool:
        """Whether the limit of outstanding reads of all connections is reached."""
        return self._outstanding >= self._settings.reads_outstanding_total

    def call_when_room(self, peer: Peer) -> None:
        """Call `peer.reads_done` once fewer reads are outstanding."""
        self._held[id(peer)] = peer

    def _wake_held(self) -> None:
        if self._held and not self.full:
            held, self._held = self._held, {}
            for peer in held.values():
                peer.reads_done()

    def wake(self) -> None:
        """A connection accepts answers again."""
        self._wanted.set()

    async def run(self) -> None:
        """Serve the queues, fairly, one portion per iteration of the loop."""
        while True:
            if not self._peers:
                self._wanted.clear()
                await self._wanted.wait()
            waited = await self._throttle.wait(urgent=self._is_urgent_ready)
            portion = self._portion()
            if not portion:
                # No waiting connection accepts answers now.
                self._wanted.clear()
                await self._wanted.wait()
                continue
            began = self._host.clock.monotonic()
            answers: list[Response] = []
            work = partial(self._read_portion, portion, answers, self._throttle.portion_bytes, self._throttle.batch_bytes)
            await self._storage.on_reader(work)
            for context, response in zip(portion, answers, strict=False):
                context.answer(response)
            self._throttle.spent(began)
            if waited:
                self._metrics.reads_paced.inc(len(answers))
                self._metrics.read_bytes_paced.inc(sum(map(_size_of, answers)))
            for context in reversed(portion[len(answers) :]):
                # A peer that does not accept answers now still gets them later.
                if not context.peer.is_gone:
                    context.peer.reads.appendleft(context)
                    self._note(context.peer, [context])
                    self._peers[id(context.peer)] = context.peer
            for peer in {id(context.peer): context.peer for context in portion}.values():
                peer.reads_done()
            self._wake_held()

    def _portion(self) -> list[RequestContext]:
        portion: list[RequestContext] = []
        for key, peer in list(self._peers.items()):
            if not peer.accepts_answers:
                continue
            taken = min(REQUESTS_PER_PEER, len(peer.reads), PORTION_REQUESTS - len(portion))
            reads = [peer.reads.popleft() for _ in range(taken)]
            self._note(peer, reads, -1)
            portion += reads
            # A connection that was served goes to the end of the queue.
            del self._peers[key]
            if peer.reads:
                self._peers[key] = peer
            if len(portion) >= PORTION_REQUESTS:
                break
        return portion

    # On the loop or on the reader's worker.

    def _read_portion(self, portion: list[RequestContext], answers: list[Response], most_bytes: int, batch_bytes: int) -> None:
        """Build answers until their size reaches the limit."""
        size = 0
        for context in portion:
            response = self.answer(context, batch_bytes)
            answers.append(response)
            size += _size_of(response)
            if size >= most_bytes:
                break

    def answer(self, context: RequestContext, batch_bytes: int) -> Response:
        """The complete answer. Damaged files give IO_ERROR, which clients take as unknown, never as 'no such entry'."""
        request, handle = context.request, context.ledger
        try:
            if isinstance(request, ReadRequest):
                if request.previous_lac is not None and request.piggyback and not request.fence:
                    return self._next_entry(request, request.previous_lac, handle, context.lac_update_ms)
                return self._read(request, handle)
            if isinstance(request, BatchReadRequest):
                return self._batch(request, handle, batch_bytes)
            if isinstance(request, ReadLacRequest):
                return self._read_lac(request, handle)
            assert isinstance(request, ListEntriesRequest), "nothing else is read"
            return self._list(request, handle)
        except (CorruptionError, FormatError, OSError) as error:
            self._damaged(handle, type(request).__name__, error)
            return v3.refusal_of(request, Status.IO_ERROR)

    def _damaged(self, handle: LedgerHandle, what: str, error: Exception) -> None:
        self._metrics.damaged_reads.inc()
        self._host.trace("bookie.damaged_read", ledger_id=handle.ledger_id, request=what, error=str(error))

    def _entry(self, handle: LedgerHandle, entry_id: int) -> tuple[Status, bytes | None]:
        if not handle.exists:
            return (Status.UNKNOWN_LEDGER_STATE if handle.limbo else Status.NO_LEDGER), None
        body = self._storage.read(handle.ledger_id, entry_id) if 0 <= entry_id <= handle.last_entry_id else None
        if body is not None:
            return Status.OK, body
        return (Status.UNKNOWN_LEDGER_STATE if handle.limbo else Status.NO_ENTRY), None

    def _read(self, request: ReadRequest, handle: LedgerHandle) -> ReadResponse:
        if handle.limbo and request.entry_id == LAST_ENTRY:
            # The last remaining entry may not be the last one written.
            return ReadResponse(Status.UNKNOWN_LEDGER_STATE, request.ledger_id, request.entry_id)
        status, body = self._entry(handle, _first_entry(request, handle))
        # Never from the header of this copy, which has not been verified since it was stored.
        max_lac = handle.max_lac if status is Status.OK and not request.fence else None
        return ReadResponse(status, request.ledger_id, request.entry_id, body, max_lac=max_lac)

    def _next_entry(self, request: ReadRequest, previous_lac: int, handle: LedgerHandle, lac_update_ms: int | None) -> ReadResponse:
        """The final answer to a long poll: the next entry if it is confirmed, else only the last-add-confirmed."""
        max_lac = handle.max_lac
        if not handle.exists or (handle.limbo and max_lac <= previous_lac):
            status = Status.UNKNOWN_LEDGER_STATE if handle.limbo else Status.NO_LEDGER
            return ReadResponse(status, request.ledger_id, request.entry_id)
        if max_lac <= previous_lac:
            if handle.lac_unreadable:
                return ReadResponse(Status.IO_ERROR, request.ledger_id, request.entry_id)
            if handle.last_entry_id < 0 and handle.durable_explicit_lac is None:
                status, _ = self._entry(handle, LAST_ENTRY)
                return ReadResponse(status, request.ledger_id, request.entry_id)
            return ReadResponse(Status.OK, request.ledger_id, request.entry_id, max_lac=max_lac)
        status, body = self._entry(handle, previous_lac + 1)
        if body is not None:
            return ReadResponse(Status.OK, request.ledger_id, previous_lac + 1, body, max_lac, lac_update_ms)
        if status is Status.NO_ENTRY:
            # Another bookie of the ensemble has it.
            return ReadResponse(Status.OK, request.ledger_id, request.entry_id, None, max_lac, lac_update_ms)
        return ReadResponse(status, request.ledger_id, request.entry_id)

    def _batch(self, request: BatchReadRequest, handle: LedgerHandle, most_bytes: int) -> BatchReadResponse:
        budget = min(request.max_bytes, most_bytes)
        wanted = request.max_count if request.max_count > 0 else 1 << 62
        packed: list[bytes] = []
        size, taken = BATCH_HEAD_BYTES, 0
        while taken < wanted:
            entry_id = request.start_entry_id + taken
            found = self._stretch(handle, entry_id, wanted - taken, budget - size)
            if found is None:
                try:
                    status, body = self._entry(handle, entry_id)
                except (CorruptionError, FormatError, OSError) as error:
                    if not taken:
                        raise
                    # The entries before it are good. A read of the damaged entry itself reports the damage.
                    self._host.trace("bookie.damaged_read", ledger_id=handle.ledger_id, entry_id=entry_id, error=str(error))
                    break
                if body is None and not taken:
                    return BatchReadResponse(status, request.ledger_id, request.start_entry_id, request.request_id)
                if body is None or (taken and size + len(body) + SIZE_FIELD.size > budget):
                    break
                found = SIZE_FIELD.pack(len(body)) + body, 1
            packed.append(found[0])
            size += len(found[0])
            taken += found[1]
        return BatchReadResponse(Status.OK, request.ledger_id, request.start_entry_id, request.request_id, packed=tuple(packed))

    def _stretch(self, handle: LedgerHandle, entry_id: int, count_max: int, size_max: int) -> tuple[bytes, int] | None:
        """Consecutive entries and their count; None if they must be read one by one, for instance because one is damaged."""
        if not handle.exists or not 0 <= entry_id <= handle.last_entry_id:
            return None
        try:
            return self._storage.stretch(handle.ledger_id, entry_id, count_max, size_max)
        except (CorruptionError, FormatError, OSError):
            return None

    def _read_lac(self, request: ReadLacRequest, handle: LedgerHandle) -> ReadLacResponse:
        """The explicit record and the last entry, each if there is one.

        An unknown ledger is "no entry" here, as in BookKeeper. An unreadable last entry is not: BookKeeper answers "no entry" there too,
        if there is no explicit record, so that an unknown entry would count as an absent one.
        """
        try:
            status, body = self._entry(handle, handle.last_entry_id)
        except (CorruptionError, FormatError, OSError) as error:
            self._damaged(handle, type(request).__name__, error)
            status, body = Status.IO_ERROR, None
        if status is Status.NO_LEDGER:
            status = Status.NO_ENTRY
        elif status is Status.NO_ENTRY and handle.durable_explicit_lac is not None:
            status = Status.OK
        if handle.limbo:
            # Entries with greater ids may have been lost.
            status, body = Status.UNKNOWN_LEDGER_STATE, None
        return ReadLacResponse(status, request.ledger_id, handle.durable_explicit_lac, body)

    def _list(self, request: ListEntriesRequest, handle: LedgerHandle) -> ListEntriesResponse:
        if handle.limbo:
            return ListEntriesResponse(Status.UNKNOWN_LEDGER_STATE, request.ledger_id)
        if not handle.exists:
            return ListEntriesResponse(Status.NO_LEDGER, request.ledger_id)
        # The cache first: an entry that a flush moves meanwhile is then seen twice, never not at all.
        cached = consecutive(sorted(self._storage.cache.ids(handle.ledger_id)))
        stored = sorted(self._storage.stored.entry_ids(handle.ledger_id), key=_start_of)
        encoded = encode_availability(merge(cached, stored, key=_start_of))
        # The clients' limit is mostly the protocol's default, which the bookie's exceeds slightly.
        if len(encoded) > min(self._settings.frame_limit_bytes, MAX_FRAME_BYTES) - LIST_ENVELOPE_BYTES:
            self._host.trace("bookie.list_too_long", ledger_id=handle.ledger_id, size_bytes=len(encoded))
            return ListEntriesResponse(Status.IO_ERROR, request.ledger_id)
        return ListEntriesResponse(Status.OK, request.ledger_id, encoded)


_start_of = attrgetter("start")


def _first_entry(request: Request, handle: LedgerHandle) -> int:
    """The entry that an answer needs first; negative: none."""
    if isinstance(request, BatchReadRequest):
        return request.start_entry_id
    if isinstance(request, ReadRequest):
        if request.previous_lac is not None and request.piggyback and not request.fence:
            return request.previous_lac + 1 if handle.max_lac > request.previous_lac else LAST_ENTRY
        if request.entry_id != LAST_ENTRY:
            return request.entry_id
    return handle.last_entry_id


def _size_of(response: Response) -> int:
    if isinstance(response, ReadResponse):
        return len(response.body or b"")
    if isinstance(response, BatchReadResponse):
        return sum(map(len, response.packed))
    if isinstance(response, ListEntriesResponse):
        return len(response.availability or b"")
    return len(response.last_entry_body or b"") if isinstance(response, ReadLacResponse) else 0
