"""Batch reading by parallel readers: planning ranges, and reading one of them. A reader needs the head only if its ledger is gone."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from types import TracebackType

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoNode, NoSuchLedger, OffsetGap, OffsetTruncated
from triplicate.ledger import Entry
from triplicate.log.core.locate import OffsetRange, plan_ranges
from triplicate.log.reading.log_entries import BusyGuard, Chunks, LogEntry, check_continuity, epoch_of, find_entry
from triplicate.log.reading.log_reader import STALE_ATTEMPTS, find_segment
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient, LedgerView
from triplicate.log.store.log_encryption import LogEncryption, is_copied
from triplicate.log.store.segments import password_of
from triplicate.runtime import sleep

BEHIND_PAUSE_S = 0.02
MAX_LANDMARKS = 4096


async def plan(store: HeadStore, name: str, start: int, end: int, max_records: int, *, skip_lost: bool = False) -> list[OffsetRange]:
    """Cut the records from `start` to `end` (exclusive) into ranges of at most `max_records`; see `plan_ranges`.

    Args:
        end: at most the readable end of the log.

    Raises:
        OffsetTruncated: `start` lies before the log's first offset. OffsetGap: the log does not hold all of the records.
    """
    for _ in range(STALE_ATTEMPTS):
        stored = await store.read(name)
        if start < stored.head.first_offset and start < end:
            raise OffsetTruncated(f"log {name!r}: offset {start} was truncated; the first that may be read is {stored.head.first_offset}")
        try:
            pages = await store.pages(name, stored.head, lambda item: item.end_offset > start and item.first_offset < end)
        except NoNode:
            continue  # A page was replaced since the head was read.
        segments = [segment for page in pages.values() for segment in page.segments]
        segments.sort(key=lambda segment: (segment.first_offset, segment.end_offset))
        segments += stored.head.recent
        if stored.head.open is not None:
            segments.append(stored.head.open)
        planned = plan_ranges(segments, start, end, max_records, skip_lost=skip_lost)
        return [replace(item, log=name, log_id=stored.head.log_id, is_encrypted=bool(stored.head.key_id)) for item in planned]
    raise OffsetGap(f"log {name!r}: its pages change too fast to plan")


class RangeReader:
    """The entries of one range, cut to its offsets; iterate with ``async for``. It ends after the last record of the range.

    Raises while iterating: OffsetGap if the ledger does not hold the records; errors of reading a ledger.
    """

    def __init__(
        self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, planned: OffsetRange, encryption: LogEncryption
    ) -> None:
        self._decoder = encryption.decoder(planned.log, planned.log_id, is_encrypted=planned.is_encrypted)
        self._is_copied = False
        self._client = client
        self._store = store
        self._settings = settings
        self._range = planned
        self._position = planned.first_offset
        self._view: LedgerView | None = None
        self._chunks: Chunks | None = None
        self._epoch = 0
        self._landmarks: list[tuple[int, int]] = []
        """Entries by the index of their first record: results of earlier searches, which shorten the next one."""
        self._seeking = True
        self._behind_until: float | None = None
        self._where = f"records {planned.first_offset} to {planned.end_offset}"
        self._guard = BusyGuard(f"ledger {planned.ledger_id}")

    def __aiter__(self) -> RangeReader:
        return self

    async def __anext__(self) -> LogEntry:
        entry = await self.next_entry()
        if entry is None:
            raise StopAsyncIteration
        return entry

    async def next_entry(self) -> LogEntry | None:
        """The next entry, or None after the last. Cancelling loses nothing."""
        with self._guard:
            while self._position < self._range.end_offset:
                try:
                    if self._chunks is None:
                        self._chunks = await self._open()
                    entry = await self._chunks.next()
                except NoSuchLedger as error:
                    await self._find_again(error)
                    continue
                if entry is None:
                    ended, self._chunks = self._chunks, None
                    await ended.aclose()
                    await self._wait_for_more(OffsetGap(f"{self._where}: ledger {self._range.ledger_id} ends at offset {self._position}"))
                    self._seeking = True
                    continue
                made = self._accept(entry)
                if made is not None:
                    return made
            return None

    async def _open(self) -> Chunks:
        planned = self._range
        if self._view is None:
            self._view = await self._client.open(planned.ledger_id, password=password_of(self._settings))
            self._epoch = epoch_of(self._view)
            self._is_copied = is_copied(self._view.metadata)
        last_entry = planned.last_entry if planned.last_entry is not None else self._view.last_add_confirmed
        index = self._position - planned.segment_first_offset
        place = bisect_right(self._landmarks, (index, last_entry))
        lowest = self._landmarks[place - 1][1] if place else 0
        highest = self._landmarks[place][1] - 1 if place < len(self._landmarks) else last_entry
        first_entry = await find_entry(self._view, index, highest, 0, lowest)
        return Chunks(self._view, first_entry, last_entry, self._settings.read_ahead_entries)

    async def _find_again(self, error: NoSuchLedger) -> None:
        """Continue in the ledger that has replaced a deleted one.

        Raises:
            NoSuchLedger: there is none. OffsetTruncated: the records were truncated.
        """
        planned, store = self._range, self._store
        if not planned.log:
            raise error
        await self.aclose()
        await store.persist(lambda: store.tree.sync(store.root))
        for _ in range(STALE_ATTEMPTS):
            head = (await store.read(planned.log)).head
            if head.log_id != planned.log_id:
                raise error
            if self._position < head.first_offset:
                raise OffsetTruncated(f"{self._where} of log {planned.log!r}: the log begins at {head.first_offset} now") from error
            try:
                segment = await find_segment(store, planned.log, head, self._position)
            except NoNode:
                continue  # A page was replaced since the head was read.
            if segment is None or segment.ledger_id == planned.ledger_id or segment.end_offset < planned.end_offset:
                raise error
            self._range = replace(
                planned, ledger_id=segment.ledger_id, segment_first_offset=segment.first_offset, last_entry=segment.last_entry
            )
            self._landmarks.clear()
            self._seeking = True
            return
        raise error

    async def _wait_for_more(self, error: OffsetGap) -> None:
        """Wait for planned records of an open ledger that the bookies asked now do not show yet. The planner has seen them confirmed, so
        they appear within a limited time."""
        clock = self._client.host.clock
        if self._range.last_entry is not None or self._view is None or self._view.is_closed:
            raise error
        self._behind_until = self._behind_until or clock.monotonic() + self._settings.behind_timeout_s
        if clock.monotonic() >= self._behind_until:
            raise error
        await sleep(clock, BEHIND_PAUSE_S)
        await self._view.read_last_confirmed()

    def _accept(self, entry: Entry) -> LogEntry | None:
        planned = self._range
        view = self._decoder.decode(entry, planned.segment_first_offset, is_copied=self._is_copied)
        first_offset = planned.segment_first_offset + view.header.first_index
        if view.control is not None or (self._seeking and first_offset + view.count <= self._position):
            return None
        slot = 0
        if self._seeking and first_offset < self._position:
            slot = self._position - first_offset
        else:
            check_continuity(self._where, self._position, first_offset, entry.ledger_id, entry.entry_id)
        if self._seeking and len(self._landmarks) < MAX_LANDMARKS:
            landmark = view.header.first_index, entry.entry_id
            place = bisect_right(self._landmarks, landmark)
            if self._landmarks[place - 1 : place] != [landmark]:
                self._landmarks.insert(place, landmark)
        self._seeking = False
        count = min(view.count, planned.end_offset - first_offset) - slot
        made = LogEntry(
            view,
            first_offset=self._position,
            slot=slot,
            count=count,
            ledger_id=entry.ledger_id,
            entry_id=entry.entry_id,
            epoch=self._epoch,
        )
        self._position += count
        return made

    async def seek(self, first_offset: int, end_offset: int) -> None:
        """Continue with another part of the range's segment; its ledger stays open. Not while an entry is being read."""
        with self._guard:
            chunks, self._chunks = self._chunks, None
            if chunks is not None:
                await chunks.aclose()
            self._range = replace(self._range, first_offset=first_offset, end_offset=end_offset)
            self._position, self._seeking, self._behind_until = first_offset, True, None
            self._where = f"records {first_offset} to {end_offset}"

    async def aclose(self) -> None:
        """Stop reading. Idempotent."""
        chunks, self._chunks = self._chunks, None
        view, self._view = self._view, None
        if chunks is not None:
            await chunks.aclose()
        if view is not None:
            await view.aclose()

    async def __aenter__(self) -> RangeReader:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
