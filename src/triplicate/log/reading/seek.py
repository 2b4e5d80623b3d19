"""Finding the offset of a time or of a transaction id: first the segment, by the list and a few reads, then the entry within it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoNode, NoSuchLedger, OffsetGap
from triplicate.log.core.encrypted_entries import EntryDecoder
from triplicate.log.core.head import Head, LogSegment, PageReference, SegmentState
from triplicate.log.core.payload import decode_header
from triplicate.log.reading.log_entries import Chunks
from triplicate.log.reading.log_reader import STALE_ATTEMPTS, find_listed_segment
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient, LedgerView
from triplicate.log.store.log_encryption import LogEncryption, is_copied
from triplicate.log.store.segments import password_of, read_header

PROBE_ENTRIES = 4
"""Entries that a search fetches at once where it looks for the next one with transaction ids."""
_Search = Callable[[Head], Awaitable[int]]


class Seek:
    """Searches in one log.

    Raises, in each search:
        NoSuchLog. Errors of reading a ledger. OffsetGap: the list changed at every attempt.
    """

    def __init__(self, name: str, client: LedgerClient, store: HeadStore, settings: LogClientSettings, encryption: LogEncryption) -> None:
        self._name = name
        self._client = client
        self._store = store
        self._settings = settings
        self._encryption = encryption

    async def time(self, time_us: int, end: int) -> int:
        """Offset of the first record whose entry was written at a time or later.

        Args:
            time_us: µs since the epoch, by the wall times of entries.
            end: where the log ends, returned if every record is older.
        """
        return await self._retried(lambda head: self._by_time(head, time_us, end))

    async def transaction(self, transaction_id: int, end: int) -> int:
        """Offset of the first record with a transaction id that is not less; the ids of the log must not fall. Arguments as for `time`."""
        return await self._retried(lambda head: self._by_transaction(head, transaction_id, end))

    async def _retried(self, search: _Search) -> int:
        """Search in the present head, and again in a newer one if pages or ledgers are gone since."""
        missing: str | None = None
        for _ in range(STALE_ATTEMPTS):
            head = (await self._store.read(self._name, synced=missing is not None)).head
            try:
                return await search(head)
            except NoNode:
                continue
            except NoSuchLedger as error:
                if missing == str(error):
                    raise
                missing = str(error)
        raise OffsetGap(f"log {self._name!r}: its list changes too fast to search in it")

    # By time.

    async def _by_time(self, head: Head, time_us: int, end: int) -> int:
        async for segment in self._segments_until(head, time_us):
            offset = await self._in_segment(segment, time_us)
            if offset is not None:
                return min(max(offset, head.first_offset), end)
        return end

    async def _segments_until(self, head: Head, time_us: int) -> AsyncIterator[LogSegment]:
        """The segments that may hold an entry of a time or later, in order."""
        waiting: list[PageReference | LogSegment] = [*head.pages, *head.recent, *([] if head.open is None else [head.open])]
        waiting.reverse()
        while waiting:
            item = waiting.pop()
            if isinstance(item, PageReference):
                if item.max_time_us >= time_us and item.end_offset > head.first_offset:
                    page = await self._store.page(self._name, head.log_id, item.page)
                    waiting += reversed(page.segments or page.references)
            elif item.state is SegmentState.OPEN or (
                item.state is SegmentState.CLOSED and item.max_time_us >= time_us and item.end_offset > head.first_offset
            ):
                yield item

    async def _in_segment(self, segment: LogSegment, time_us: int) -> int | None:
        """Offset of a segment's first record that was written at a time or later; None if it has none."""
        view = await self._client.open(segment.ledger_id, password=password_of(self._settings))
        try:
            last = view.last_add_confirmed if segment.state is SegmentState.OPEN else segment.last_entry
            # Wall times go back only where an entry was copied from another ledger.
            first = 0 if is_copied(view.metadata) else await self._first_entry(view, time_us, last)
            chunks = Chunks(view, first, last, self._settings.read_ahead_entries)
            try:
                while (entry := await chunks.next()) is not None:
                    header = decode_header(entry.payload)
                    if header.wall_time_us >= time_us and not header.is_control:
                        return segment.first_offset + header.first_index
            finally:
                await chunks.aclose()
        finally:
            await view.aclose()
        return None

    async def _first_entry(self, view: LedgerView, time_us: int, last: int) -> int:
        """The first entry of a time or later, by binary search."""
        low, high = 0, last + 1
        while low < high:
            middle = (low + high) // 2
            if (await read_header(view, middle)).wall_time_us >= time_us:
                high = middle
            else:
                low = middle + 1
        return low

    # By transaction id.

    async def _by_transaction(self, head: Head, wanted: int, end: int) -> int:
        """Halve the offsets, from segment to segment. Records from `high` on, if they have an id, have none that is less."""
        low, high, found = head.first_offset, end, end
        while low < high:
            segment = await self._listed(head, (low + high) // 2)
            begin = max(low, segment.first_offset)
            searched = await self._search(head, segment, wanted)
            while searched is None and segment.state is not SegmentState.OPEN and segment.end_offset < high:
                segment = await self._listed(head, segment.end_offset)
                searched = await self._search(head, segment, wanted)
            if searched is None:
                high = begin
                continue
            place, offset = searched
            if place is _Place.WITHIN:
                return max(offset, head.first_offset)
            if place is _Place.FIRST:
                high, found = begin, max(offset, head.first_offset)
            else:
                low = high if segment.state is SegmentState.OPEN else segment.end_offset
        return found

    async def _listed(self, head: Head, offset: int) -> LogSegment:
        segment = await find_listed_segment(self._store, self._name, head, offset)
        if segment is None:
            raise OffsetGap(f"log {self._name!r}: no segment holds offset {offset}")
        return segment

    async def _search(self, head: Head, segment: LogSegment, wanted: int) -> tuple[_Place, int] | None:
        """Search in one segment; None if it has no transaction ids, or is lost.

        Returns:
            Where the record lies, and its offset; -1 where it lies behind.
        """
        if segment.state is SegmentState.LOST:
            return None
        view = await self._client.open(segment.ledger_id, password=password_of(self._settings))
        try:
            last = view.last_add_confirmed if segment.state is SegmentState.OPEN else segment.last_entry
            entries = _Identified(view, segment, self._encryption.decoder(self._name, head.log_id, is_encrypted=bool(head.key_id)))
            best = await entries.forward(0, last)
            if best is None:
                return None
            if best.ids[0] >= wanted:
                return _Place.FIRST, best.first_offset
            # `best` begins with a smaller id; entries behind `high` begin with one that is not less, or have none.
            high = last
            while best.entry_id < high:
                middle = (best.entry_id + high + 1) // 2
                probed = await entries.forward(middle, high)
                if probed is None or probed.ids[0] >= wanted:
                    high = middle - 1
                else:
                    best = probed
            place = bisect_left(best.ids, wanted)
            if place < len(best.ids):
                return _Place.WITHIN, best.first_offset + place
            following = await entries.forward(best.entry_id + 1, last)
            return (_Place.BEHIND, -1) if following is None else (_Place.WITHIN, following.first_offset)
        finally:
            await view.aclose()


class _Place(Enum):
    """Where the first record of an id that is not less lies, seen from one segment."""

    FIRST = "first"
    """It is the segment's first record with an id, or lies before the segment."""
    WITHIN = "within"
    BEHIND = "behind"


@dataclass(frozen=True, slots=True)
class _Ids:
    """The transaction ids of one entry."""

    entry_id: int
    first_offset: int
    ids: list[int]


class _Identified:
    """The entries of a segment that have transaction ids."""

    def __init__(self, view: LedgerView, segment: LogSegment, decoder: EntryDecoder) -> None:
        self._view = view
        self._segment = segment
        self._decoder = decoder
        self._is_copied = is_copied(view.metadata)

    async def forward(self, first: int, last: int) -> _Ids | None:
        """The first such entry from `first` to `last`."""
        chunks = Chunks(self._view, first, last, PROBE_ENTRIES)
        try:
            while (entry := await chunks.next()) is not None:
                view = self._decoder.decode(entry, self._segment.first_offset, is_copied=self._is_copied)
                if view.transaction_ids is not None:
                    return _Ids(entry.entry_id, self._segment.first_offset + view.header.first_index, view.transaction_ids.tolist())
        finally:
            await chunks.aclose()
        return None
