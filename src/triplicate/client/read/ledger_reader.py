"""Reading a ledger without disturbing its writer.

Source: BookKeeper `LedgerOpenOp`, `ReadOnlyLedgerHandle`, `LedgerHandle`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import TracebackType

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.connection.single_request import send_request
from triplicate.client.context import ClientContext
from triplicate.client.read.batch_read import BatchRead, BatchSupport
from triplicate.client.read.lac_read import ExplicitLacRead, LacRead, TryLacRead
from triplicate.client.read.long_poll import LongPoller
from triplicate.client.read.range_read import BATCHES_AT_A_TIME, BegunRead, RangeRead, replicas_of, segment_end
from triplicate.client.read.tail import Tail
from triplicate.errors import ArgumentError, ConnectionLost, HandleClosed, NoSuchEntry, ReadFailed
from triplicate.ledger import Availability, Entry, EntryCodec, LedgerMetadata, decode_availability
from triplicate.metadata import Versioned
from triplicate.runtime import resolve, timeout_at
from triplicate.wire import LAST_ENTRY, ListEntriesRequest, ListEntriesResponse, ReadRequest, ReadResponse, Status

REFRESH_S = 0.1
"""Shortest time that a wait for an entry allows for reading the metadata, in seconds."""


class LedgerReader:
    """A view of a ledger. Made by `Client.open` and `Client.recover`. Its last-add-confirmed never decreases."""

    def __init__(self, context: ClientContext, ledger_id: int, found: Versioned) -> None:
        self.ledger_id = ledger_id
        self._context = context
        self._found = found
        self._codec = EntryCodec(ledger_id, found.value.digest_type, found.value.password)
        self._last_add_confirmed = found.value.last_entry_id
        self._batches = BatchSupport(context)
        self._tails: dict[int, Tail] = {}
        self._closed = False
        self.missing_bookies: tuple[str, ...] = ()
        """Bookies to which the recovery that opened this reader could not copy entries. See `Client.recover`."""

    @property
    def metadata(self) -> LedgerMetadata:
        """As last read."""
        return self._found.value

    @property
    def is_closed(self) -> bool:
        """Whether the ledger, as last read, is closed: its end is then final."""
        return self._found.value.is_closed

    @property
    def last_add_confirmed(self) -> int:
        """The greatest id known to be confirmed; of a closed ledger the last. -1 when there is none."""
        return self._last_add_confirmed

    @property
    def length(self) -> int | None:
        """Payload bytes of a closed ledger; None while it is open. It may be wrong for ledgers closed by other clients."""
        return self._found.value.length if self.is_closed else None

    @property
    def entries_at_a_time(self) -> int:
        """The most entries that one read has in flight."""
        settings = self._context.settings
        return settings.read_window_entries * (BATCHES_AT_A_TIME if self._batches.fits(self.metadata) else 1)

    async def read(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """Entries `first_entry_id` to `last_entry_id`, both included, verified and in order. All are held in memory at once.

        Raises:
            ArgumentError: the range is empty or begins below 0. NoSuchEntry: it ends behind the last confirmed entry.
            ReadFailed: no replica delivered an entry, even after the metadata was read again. NoSuchLedger: it was deleted meanwhile.
            ConnectionLost: the metadata store is away, so it is unknown whether entries behind the last known one are confirmed.
        """
        self._check_range(first_entry_id, last_entry_id)
        await self._reach(last_entry_id)
        return await self.read_confirmed(first_entry_id, last_entry_id)

    async def read_unconfirmed(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """`read` without a check of the last-add-confirmed: the entries may include unacknowledged ones, which may disappear later.

        Raises:
            NoSuchEntry: every replica of an entry says that it does not have it. Otherwise as `read`.
        """
        self._check_range(first_entry_id, last_entry_id)
        return await self._read_range(first_entry_id, last_entry_id, unconfirmed=True)

    async def read_batch(self, first_entry_id: int, max_entries: int, max_bytes: int = 0) -> list[Entry]:
        """Confirmed entries from `first_entry_id` on in one request: at least one, and often fewer than requested.

        Without support for batches (other wire versions, ensembles larger than the write quorum, bookies before BookKeeper 4.17), the
        entries are read one by one, with the same result.

        Args:
            max_entries: upper bound on the entries. max_bytes: upper bound on the bytes of the entries in the answer, except that the
                first is always delivered; 0 for the largest frame.

        Raises:
            ArgumentError: the arguments request nothing. Otherwise as `read`.
        """
        self._check_range(first_entry_id, first_entry_id)
        if max_entries < 1 or max_bytes < 0:
            raise ArgumentError(f"max_entries is {max_entries} and max_bytes {max_bytes}; at least one entry and 0 bytes must be allowed")
        await self._reach(first_entry_id)
        limit = self._context.settings.frame_limit_bytes
        max_bytes = min(max_bytes, limit) if max_bytes else limit
        last = min(first_entry_id + max_entries - 1, self._last_add_confirmed)
        if self._batches.fits(self.metadata):
            entries = await self._request_batch(first_entry_id, last, max_bytes)
            if entries:
                return entries
        last = min(last, first_entry_id + self._context.settings.read_window_entries - 1)
        return self._cut(await self.read_confirmed(first_entry_id, last), max_bytes)

    async def _request_batch(self, first: int, last: int, max_bytes: int) -> list[Entry]:
        """The entries that one bookie delivers; empty if they must be read one by one."""
        self._context.near.refresh()
        future: asyncio.Future[BatchRead] = asyncio.get_running_loop().create_future()
        count = min(last + 1, segment_end(self.metadata, first)) - first
        replicas = self._context.reads.order.order(replicas_of(self.metadata, first))
        BatchRead(self._context, self._codec, first, count, max_bytes, replicas, partial(resolve, future), lambda: not future.done())
        batch = await future
        if batch.closed is not None:
            raise batch.closed
        if batch.impossible:
            self._batches.refuse(batch.bookie_id)
        self._count(len(batch.entries), batch.payload_bytes)
        return batch.entries

    def _cut(self, entries: list[Entry], max_bytes: int) -> list[Entry]:
        room = max_bytes
        for index, entry in enumerate(entries):
            room -= len(entry.payload) + self._codec.overhead
            if room < 0 and index:
                return entries[:index]
        return entries

    async def _reach(self, entry_id: int) -> None:
        """Refresh the last-add-confirmed, if the entry is not known to be confirmed."""
        if entry_id > self._last_add_confirmed and not self.is_closed:
            await self.read_last_confirmed()
        while entry_id > self._last_add_confirmed and not self.is_closed and await self._has_changed(self._found.version):
            await self.refresh_last_confirmed()
        if entry_id > self._last_add_confirmed:
            error = NoSuchEntry(
                f"entry {entry_id} of ledger {self.ledger_id} does not exist: the last confirmed entry is {self._last_add_confirmed}"
            )
            error.ledger_id = self.ledger_id
            raise error

    def _check_range(self, first_entry_id: int, last_entry_id: int) -> None:
        self._check_usable()
        if not 0 <= first_entry_id <= last_entry_id:
            raise ArgumentError(f"entries {first_entry_id} to {last_entry_id} are not a range")

    async def read_confirmed(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """`read` of entries that are known to be confirmed."""
        return await self._read_range(first_entry_id, last_entry_id, unconfirmed=False)

    def begin_confirmed(self, first_entry_id: int, last_entry_id: int) -> BegunRead:
        """Begin to read entries that are known to be confirmed. `finish_confirmed` returns them, or the caller cancels the read."""
        begun = self._begin(first_entry_id, last_entry_id, unconfirmed=False)
        begun.reading.future.add_done_callback(partial(self._observe, self._context.host.clock.monotonic()))
        return begun

    async def finish_confirmed(self, begun: BegunRead) -> list[Entry]:
        """The entries of a read that was begun. Raises as `read`."""
        return await self._finish(begun, unconfirmed=False)

    def _observe(self, started_at: float, _: object) -> None:
        """Measure a read that is over."""
        self._context.metrics.read_seconds.observe(self._context.host.clock.monotonic() - started_at)

    def _begin(self, first: int, last: int, *, unconfirmed: bool) -> BegunRead:
        reading = RangeRead(self._context, self.metadata, self._codec, first, last, self._batches, unconfirmed=unconfirmed)
        return BegunRead(first, last, self._found.version, reading)

    async def _read_range(self, first: int, last: int, *, unconfirmed: bool) -> list[Entry]:
        started_at = self._context.host.clock.monotonic()
        entries = await self._finish(self._begin(first, last, unconfirmed=unconfirmed), unconfirmed=unconfirmed)
        self._observe(started_at, None)
        return entries

    async def _finish(self, begun: BegunRead, *, unconfirmed: bool) -> list[Entry]:
        while True:
            reading = begun.reading
            try:
                entries = await reading.future
            except (ReadFailed, NoSuchEntry):
                # Even a closed ledger's entries move to other bookies when their copies are restored.
                if not await self._has_changed(begun.version):
                    raise
                begun = self._begin(begun.first_entry_id, begun.last_entry_id, unconfirmed=unconfirmed)
            else:
                break
        self._count(len(entries), reading.delivered.received_bytes)
        self.learn(max(entries[-1].last_add_confirmed, reading.max_lac))
        return entries

    def _count(self, entries: int, payload_bytes: int) -> None:
        self._context.metrics.read.inc(entries)
        self._context.metrics.read_bytes.inc(payload_bytes)

    async def read_last_confirmed(self) -> int:
        """Ask the bookies how far the ledger is confirmed; never fences. A closed ledger answers from its metadata.

        An entry that was just acknowledged may be missing from the answer: it becomes known with the entry that follows it.

        Raises:
            ReadFailed: too few bookies answered to exclude that more is confirmed; the message names the others.
            NoSuchLedger: it was deleted. ConnectionLost: the metadata, which names the bookies to ask, is away.
        """
        self._check_usable()
        if not self.is_closed:
            # Bookies that were replaced since would answer with an old value: they receive neither later entries nor the ledger's end.
            await self.refresh_metadata()
        return await self.refresh_last_confirmed()

    async def refresh_last_confirmed(self) -> int:
        """`read_last_confirmed` with metadata that was just read."""
        while not self.is_closed:
            version = self._found.version
            try:
                self.learn(await LacRead(self._context, self.metadata, self._codec).future)
            except ReadFailed:
                if not await self._has_changed(version):
                    raise
            else:
                break
        return self._last_add_confirmed

    async def read_last_written(self) -> Entry | None:
        """The last entry that the bookies report, confirmed or not. No entry behind it was acknowledged before this call.

        An unconfirmed entry may disappear later. Never fences.

        Returns:
            None if no entry was acknowledged before this call.

        Raises:
            ReadFailed, NoSuchLedger, ConnectionLost: as `read_last_confirmed`.
        """
        self._check_usable()
        if not self.is_closed:
            # A bookie that has replaced one of those known so far may alone have the last entry.
            await self.refresh_metadata(synced=True)
        newest: Entry | None = None
        while not self.is_closed:
            version = self._found.version
            reading = LacRead(self._context, self.metadata, self._codec)
            try:
                self.learn(await reading.future)
            except ReadFailed:
                if not await self._has_changed(version):
                    raise
            else:
                newest = reading.newest
                break
        confirmed = self._last_add_confirmed
        if newest is not None and newest.entry_id >= confirmed:
            return newest
        return (await self.read_confirmed(confirmed, confirmed))[0] if confirmed >= 0 else None

    async def try_last_confirmed(self) -> int:
        """Ask all bookies of the last ensemble for their last entry, and use the first answer above the known last-add-confirmed.

        Later entries may be confirmed as well: `read_last_confirmed` finds them. Returns the known value when no bookie reports more.

        Raises:
            ReadFailed: no bookie gave a usable answer.
        """
        self._check_usable()
        if not self.is_closed:
            self.learn(await TryLacRead(self._context, self.metadata, self._codec, self._last_add_confirmed).future)
        return self._last_add_confirmed

    async def read_explicit_last_confirmed(self) -> int | None:
        """The last-add-confirmed that the writer sent to the bookies outside of entries; None when it sent none.

        Goes over version 3 of the protocol. A closed ledger answers from its metadata.

        Raises:
            ReadFailed: too few bookies answered to exclude that one has a greater value. NoSuchLedger, ConnectionLost: as
            `read_last_confirmed`.
        """
        self._check_usable()
        if not self.is_closed:
            await self.refresh_metadata()
        if self.is_closed:
            return self._last_add_confirmed
        reading = ExplicitLacRead(self._context, self.metadata, self._codec)
        await reading.future
        self.learn(reading.explicit)
        return reading.explicit if reading.explicit >= 0 else None

    async def wait_for_entry(self, entry_id: int, timeout_s: float) -> Entry | None:
        """The entry as soon as it is confirmed; None when `timeout_s` seconds pass before, or the ledger ends before it (`is_closed`).

        `last_add_confirmed` may have grown meanwhile.

        Raises:
            ArgumentError: the id is below 0. ReadFailed: bookies were asked, and none gave a usable answer.
            NoSuchLedger: it was deleted.
        """
        self._check_range(entry_id, entry_id)
        clock = self._context.host.clock
        refresh_at = clock.monotonic()
        deadline = refresh_at + timeout_s
        poller = LongPoller(self._context, self, self._codec, longest_wait_s=timeout_s)
        while entry_id > self._last_add_confirmed and not self.is_closed:
            now = clock.monotonic()
            if now >= refresh_at:
                # At most half of the remaining time: bookies can deliver the entry even when the metadata store does not answer.
                pause_s = self._context.settings.long_poll_wait_s
                await self._refresh_if_there(now + max(REFRESH_S, min(pause_s, (deadline - now) / 2)))
                refresh_at = clock.monotonic() + pause_s
                continue
            if now >= deadline:
                if poller.failure and not poller.answers:
                    raise self._no_answer(entry_id, poller.failure)
                return None
            entry = await poller.wait(entry_id, min(deadline, refresh_at) - now)
            if entry is not None:
                self._count(1, len(entry.payload))
                return entry
        if entry_id > self._last_add_confirmed:
            return None
        return (await self.read_confirmed(entry_id, entry_id))[0]

    async def _refresh_if_there(self, deadline: float) -> None:
        try:
            async with timeout_at(deadline):
                await self.refresh_metadata()
        except (ConnectionLost, TimeoutError):
            self._context.host.trace("client.metadata_away", ledger=self.ledger_id)

    def _no_answer(self, entry_id: int, failure: str) -> ReadFailed:
        error = ReadFailed(f"no bookie could say whether entry {entry_id} of ledger {self.ledger_id} is confirmed: {failure}")
        error.ledger_id = self.ledger_id
        return error

    async def entries_on(self, bookie_id: str) -> Availability:
        """Which entries of the ledger a bookie holds, as it says itself; empty when it says that it knows nothing of the ledger.

        Raises:
            BookieError: it did not answer, or with an error; what it holds is unknown. ProtocolError: the list cannot be read.
        """
        self._check_usable()
        channel = self._context.pool.v3_channel(bookie_id)
        response = await send_request(channel, ListEntriesRequest(self.ledger_id), ListEntriesResponse)
        if response.status is Status.OK and response.availability is not None:
            return decode_availability(response.availability)
        if response.status in EXPLICIT_NEGATIVES:
            return Availability(())
        status = Status.IO_ERROR if response.status is Status.OK else response.status
        raise error_for_status(status, bookie_id, self.ledger_id, "list of the entries")

    async def read_from(self, bookie_id: str, entry_id: int) -> Entry | None:
        """One bookie's copy of an entry, verified; None only when it says explicitly that it has no copy.

        Raises:
            BookieError: it did not answer, or with an error; whether it holds the entry is unknown.
            DigestMismatch: it holds a damaged copy.
        """
        self._check_usable()
        response = await send_request(self._context.pool.channel(bookie_id), ReadRequest(self.ledger_id, entry_id), ReadResponse)
        if response.status == Status.OK and response.body is not None:
            return self._codec.decode(response.body, None if entry_id == LAST_ENTRY else entry_id)
        if response.status in EXPLICIT_NEGATIVES:
            return None
        raise error_for_status(response.status, bookie_id, self.ledger_id, f"read of entry {entry_id}")

    def tail(self, first_entry_id: int = 0) -> Tail:
        """Iterate over the entries from `first_entry_id` on, as they are confirmed, until the ledger is closed; never fences.

        Use it with ``async with`` or close it with `Tail.aclose`.
        """
        self._check_usable()
        if first_entry_id < 0:
            raise ArgumentError(f"first_entry_id is {first_entry_id}; it must be 0 or more")
        tail = Tail(self._context, self, self._codec, first_entry_id)
        self._tails[id(tail)] = tail
        return tail

    def tail_ended(self, tail: Tail) -> None:
        """For `Tail.aclose`."""
        self._tails.pop(id(tail), None)

    @property
    def has_tails(self) -> bool:
        """Whether a tail of this reader is still open."""
        return bool(self._tails)

    async def refresh_metadata(self, *, synced: bool = False) -> None:
        """Read the metadata again: new segments, other bookies, or the ledger's end.

        Args:
            synced: see every change that was made before this call; a ZooKeeper server may be behind the others otherwise.

        Raises:
            NoSuchLedger: it was deleted. ConnectionLost: the metadata store is away.
        """
        if synced:
            await self._context.metadata.ledgers.refresh()
        found = await self._context.metadata.ledgers.get(self.ledger_id)
        if found.version >= self._found.version:
            self._found = found
            if found.value.is_closed:
                self._last_add_confirmed = found.value.last_entry_id
            else:
                self.learn(found.value.last_segment.first_entry_id - 1)

    async def _has_changed(self, version: int) -> bool:
        """Whether the metadata, read again, have another version than this. Before the answer is no, the store is synced: what a server
        that is behind shows may name bookies that never had the entries.

        Raises:
            As `refresh_metadata`.
        """
        await self.refresh_metadata()
        if self._found.version == version:
            await self.refresh_metadata(synced=True)
        return self._found.version != version

    def learn(self, last_add_confirmed: int) -> None:
        """Record that the ledger is confirmed up to this entry. The known value only grows, and is final once the ledger is closed."""
        if not self.is_closed and last_add_confirmed > self._last_add_confirmed:
            self._last_add_confirmed = last_add_confirmed

    async def aclose(self) -> None:
        """End the tails of this reader. Idempotent. The ledger itself is not touched."""
        self._closed = True
        for tail in list(self._tails.values()):
            await tail.aclose()

    async def __aenter__(self) -> LedgerReader:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def _check_usable(self) -> None:
        if self._closed:
            raise HandleClosed(f"the reader of ledger {self.ledger_id} was closed")
