"""Copies of entries on single bookies: one copy is read and verified, one is written past the fence, and a bookie's entries are listed.

For programs that check and repair the copies of ledgers. Readers and writers of ledgers choose their bookies themselves.
Source: BookKeeper `BookieClient`, `LedgerFragmentReplicator`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from triplicate.client.connection.add_framing import AddFraming, V2AddFraming, V3AddFraming
from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, KINDS_OF_READS, error_for_status
from triplicate.client.connection.single_request import send_request
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, ConnectionBroken, DigestMismatch, TriplicateError
from triplicate.ledger import Availability, Entry, EntryCodec, decode_availability, decode_entries
from triplicate.runtime import fail, resolve
from triplicate.wire import (
    LAST_ENTRY,
    BatchAnswer,
    BatchReadRequest,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadRequest,
    ReadResponse,
    Response,
    Status,
)

BATCH_SIZE_BYTES = 4
"""Bytes of the size before each entry of a batch."""


class BookieCopies:
    """Requests to single bookies, on connections of their own. Made by `Client.bookie_copies`; the caller closes it.

    A ledger's recovery adds to one bookie use one `CopyStream` at a time.
    """

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._pool = context.new_pool()
        self._batches_refused = False

    async def __aenter__(self) -> BookieCopies:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and fail every request. Idempotent."""
        self._pool.close()

    async def read(self, codec: EntryCodec, entry_id: int, bookie_id: str) -> bytes | None:
        """One complete entry, header and digest included, whose digest is right; None if the bookie denies the entry or its ledger.

        Raises:
            DigestMismatch, CopyUnreadable: the copy is damaged. BookieError: no usable answer, so it is unknown whether the bookie has the
                entry. Unauthorized: the bookie requires authentication.
        """
        body = await self._body(codec.ledger_id, entry_id, bookie_id)
        if body is not None:
            self._decode(codec, body, entry_id, bookie_id)
        return body

    @property
    def has_batches(self) -> bool:
        """Whether `read_batch` may be used: not over version 3, nor after a bookie has refused one."""
        return self._pool.wire == "v2" and self._context.settings.batch_read and not self._batches_refused

    async def read_batch(self, codec: EntryCodec, first: int, count: int, max_bytes: int, bookie_id: str) -> list[bytes]:
        """Complete entries from `first` on whose digests are right, up to the first that is absent or damaged; none if the first is.

        Args:
            count: maximum number of entries. max_bytes: limit of the answer; a single larger entry is delivered nevertheless.

        Raises:
            BookieError: no usable answer. Unauthorized: the bookie requires authentication.
        """
        request = BatchReadRequest(codec.ledger_id, first, 0, count, max_bytes)
        try:
            answer = await send_request(self._pool.batch_channel(bookie_id), request, BatchAnswer)
        except ConnectionBroken:
            # Bookies before BookKeeper 4.17 close a connection on which they get a batch read.
            self._batches_refused = True
            raise
        if answer.status in EXPLICIT_NEGATIVES:
            return []
        if answer.status is not Status.OK:
            raise error_for_status(answer.status, bookie_id, codec.ledger_id, f"read of entries from {first} on")
        entries, _, mismatch = decode_entries(codec, answer.data, answer.position, answer.end, first, count)
        if mismatch is not None:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
        bodies: list[bytes] = []
        position = answer.position
        for entry in entries:
            start = position + BATCH_SIZE_BYTES
            position = start + codec.overhead + len(entry.payload)
            bodies.append(answer.data[start:position])
        return bodies

    async def read_each(self, codec: EntryCodec, entry_ids: Sequence[int], bookie_id: str) -> dict[int, bytes]:
        """Complete entries whose digests are right, by id; without those that are absent or damaged. All requests are sent at once.

        Raises:
            BookieError: no usable answer to one of the requests. Unauthorized: the bookie requires authentication.
        """
        bodies: dict[int, bytes] = {}
        errors: list[TriplicateError] = []
        left = len(entry_ids)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(entry_id: int, response: Response | None, error: BookieError | None) -> None:
            nonlocal left
            left -= 1
            if isinstance(response, ReadResponse) and response.status is Status.OK and response.body is not None:
                bodies[entry_id] = bytes(response.body)
            elif error is not None:
                errors.append(error)
            elif isinstance(response, ReadResponse) and response.status not in EXPLICIT_NEGATIVES:
                status = Status.IO_ERROR if response.status is Status.OK else response.status
                errors.append(error_for_status(status, bookie_id, codec.ledger_id, f"read of entry {entry_id}"))
            if not left:
                resolve(done, None)

        channel = self._pool.channel(bookie_id)
        for entry_id in entry_ids:
            channel.call(ReadRequest(codec.ledger_id, entry_id), answered, entry_id)
        await done
        if errors:
            raise errors[0]
        return {entry_id: body for entry_id, body in bodies.items() if self._is_right(codec, body, entry_id, bookie_id)}

    async def last_entry_id(self, codec: EntryCodec, bookie_id: str) -> int | None:
        """Id of the last entry of a ledger on a bookie; None if it has none. The ledger is not fenced. Raises as `read`."""
        last = await self.last_entry(codec, bookie_id)
        return None if last is None else last.entry_id

    async def last_entry(self, codec: EntryCodec, bookie_id: str) -> Entry | None:
        """The last entry of a ledger on a bookie; None if it has none. The ledger is not fenced. Raises as `read`."""
        body = await self._body(codec.ledger_id, LAST_ENTRY, bookie_id)
        return None if body is None else self._decode(codec, body, None, bookie_id)

    async def listed(self, ledger_id: int, bookie_id: str) -> Availability:
        """The entries of a ledger that a bookie lists. Uses version 3 of the protocol.

        Raises:
            CopyUnreadable: the bookie cannot make the list. BookieError: no usable answer. ProtocolError: the list cannot be decoded.
            Unauthorized: the bookie requires authentication.
        """
        response = await send_request(self._pool.v3_channel(bookie_id), ListEntriesRequest(ledger_id), ListEntriesResponse)
        if response.status in EXPLICIT_NEGATIVES:
            return Availability(())
        if response.status is not Status.OK or response.availability is None:
            status = Status.IO_ERROR if response.status is Status.OK else response.status
            raise error_for_status(status, bookie_id, ledger_id, "request for the entries", KINDS_OF_READS)
        return decode_availability(response.availability)

    async def fence(self, codec: EntryCodec, entry_id: int, bookie_id: str) -> None:
        """Fence a ledger on a bookie, durably, by a read of an entry.

        Uses version 3 of the protocol, in which a missing entry of a bookie in limbo is no I/O error, unless the bookie serves clients
        from before BookKeeper 4.15. There the bookie must have the entry.

        Raises:
            BookieError: no usable answer. Unauthorized: the master key is not the ledger's.
        """
        request = ReadRequest(codec.ledger_id, entry_id, fence=True, master_key=codec.master_key)
        response = await send_request(self._pool.v3_channel(bookie_id), request, ReadResponse)
        if response.status not in (Status.OK, Status.UNKNOWN_LEDGER_STATE, *EXPLICIT_NEGATIVES):
            raise error_for_status(response.status, bookie_id, codec.ledger_id, "fencing read")

    def is_unlisted(self, bookie_id: str) -> bool:
        """Whether the bookie answered reads and no request for a list of entries, a short time ago."""
        return bookie_id in self._context.unlisted_bookies.names(self._context.host.clock.monotonic())

    def remember_unlisted(self, bookie_id: str) -> None:
        """Record that the bookie answers reads and gives no lists. All `BookieCopies` of the client know it."""
        self._context.unlisted_bookies.add(bookie_id, self._context.host.clock.monotonic())

    def open_stream(self, codec: EntryCodec, bookie_id: str) -> CopyStream:
        """Open the stream of a ledger's recovery adds to one bookie. The caller closes it."""
        return CopyStream(self._context, self._pool, codec, bookie_id)

    async def _body(self, ledger_id: int, entry_id: int, bookie_id: str) -> bytes | None:
        response = await send_request(self._pool.channel(bookie_id), ReadRequest(ledger_id, entry_id), ReadResponse)
        if response.status in EXPLICIT_NEGATIVES:
            return None
        if response.status is not Status.OK or response.body is None:
            status = Status.IO_ERROR if response.status is Status.OK else response.status
            raise error_for_status(status, bookie_id, ledger_id, f"read of entry {entry_id}", KINDS_OF_READS)
        return bytes(response.body)

    def _is_right(self, codec: EntryCodec, body: bytes, entry_id: int, bookie_id: str) -> bool:
        try:
            self._decode(codec, body, entry_id, bookie_id)
        except DigestMismatch:
            return False
        return True

    def _decode(self, codec: EntryCodec, body: bytes, entry_id: int | None, bookie_id: str) -> Entry:
        try:
            return codec.decode(body, entry_id)
        except DigestMismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            raise


@dataclass(frozen=True, slots=True)
class _SentCopy:
    order: int
    stored: asyncio.Future[None]


class CopyStream:
    """Recovery adds of one ledger to one bookie, which pass the fence. Several may be in flight; the caller bounds their number.

    The first failure ends the stream: every add in flight, and every later one, raises it.
    """

    def __init__(self, context: ClientContext, pool: ChannelPool, codec: EntryCodec, bookie_id: str) -> None:
        self._ledger_id = codec.ledger_id
        self._heads: AddFraming = V2AddFraming(codec.master_key, recovery=True)
        if pool.wire == "v3":
            self._heads = V3AddFraming(codec.ledger_id, codec.master_key, pool.transactions, recovery=True)
        self._waiting: dict[int, _SentCopy] = {}
        """Entries in flight by id, in the order of sending."""
        self._sent = 0
        self._failure: TriplicateError | None = None
        self._stream: AddStream = pool.channel(bookie_id).open_stream(codec.ledger_id, self)

    def add(self, entry_id: int, body: bytes) -> asyncio.Future[None]:
        """Write one complete entry. The future is done when the bookie has stored it durably.

        Raises (also from the future):
            BookieError: the bookie refused it or did not answer. Unauthorized: the master key is not the ledger's.
        """
        if self._failure is not None:
            raise self._failure
        assert entry_id not in self._waiting, "an entry is sent once at a time"
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sent += 1
        self._waiting[entry_id] = _SentCopy(self._sent, stored)
        frame = self._heads.head(entry_id, len(body)) + body + self._heads.tail
        self._stream.send(frame, InFlight(self._sent, 1, len(frame), self._stream.now()))
        return stored

    def close(self) -> None:
        """Forget the adds in flight. Idempotent."""
        self._stream.close()

    # AddSink.

    def adds_acknowledged(self, stream: AddStream, entry_ids: Sequence[int]) -> None:
        """The bookie stored these entries."""
        for entry_id in entry_ids:
            sent = self._waiting.pop(entry_id, None)
            if sent is not None:
                resolve(sent.stored, None)
        oldest = next(iter(self._waiting.values()), None)
        stream.release(self._sent if oldest is None else oldest.order - 1)

    def add_acknowledged(self, stream: AddStream, entry_id: int) -> None:
        """The bookie stored this entry."""
        self.adds_acknowledged(stream, (entry_id,))

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """End the stream: a bookie that refuses one copy refuses the others likewise."""
        self._fail(error_for_status(status, bookie_id, self._ledger_id, "recovery add of an entry"))

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Adds in flight have an unknown outcome. A copy may be written again, since its bytes are the same."""
        self._fail(error)

    def resume_adds(self) -> None:
        """Nothing waits for room here."""

    def check_pace(self, now: float) -> None:
        """A slow bookie is not replaced here."""

    def _fail(self, error: TriplicateError) -> None:
        if self._failure is None:
            self._failure = error
        self._stream.close()
        waiting, self._waiting = self._waiting, {}
        for sent in waiting.values():
            fail(sent.stored, error)
