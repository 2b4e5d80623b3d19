"""Reading a log backwards: the last entry first, segment by segment, down to the first offset."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoNode, NoSuchLedger, OffsetGap, OffsetTruncated
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.locate import check_not_lost
from triplicate.log.reading.log_entries import FIRST_CHUNK_ENTRIES, BusyGuard, LogEntry, check_continuity, epoch_of, find_holder
from triplicate.log.reading.log_reader import STALE_ATTEMPTS, check_identity, find_listed_segment
from triplicate.log.reading.log_record import LogRecord, check_limit, records_of
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient, LedgerView
from triplicate.log.store.log_encryption import LogEncryption, is_copied
from triplicate.log.store.segments import password_of


@dataclass(slots=True)
class _OpenedSegment:
    """The segment that is read.

    Args:
        next_entry: the entry before those that were fetched.
        seeking: whether the position was searched within the segment, so that it may lie within an entry.
        chunk_entries: how many entries are fetched next.
    """

    segment: LogSegment
    view: LedgerView
    next_entry: int
    seeking: bool = True
    chunk_entries: int = FIRST_CHUNK_ENTRIES


class BackwardReader:
    """Made by `Logs.backwards`. ``async for record in reader`` delivers the records before a position, the last one first, and ends at the
    log's first offset. Entries are fetched in chunks, so its memory does not depend on the log. As with `LogRecords`, a loop needs no
    ``async with``.

    Raises while reading:
        OffsetTruncated: the log was truncated at the next record since reading began. OffsetGap: the next record is lost, or the log is
        damaged. `position` stays, and `skip_lost` passes over lost segments. Errors of reading a ledger.

    Args:
        begin: finds the offset before which reading begins.
    """

    def __init__(
        self,
        name: str,
        client: LedgerClient,
        store: HeadStore,
        settings: LogClientSettings,
        encryption: LogEncryption,
        begin: Callable[[], Awaitable[int]],
        *,
        skip_lost: bool,
    ) -> None:
        self.name = name
        self.lost: list[tuple[int, int]] = []
        """The first and the last offset of each lost segment that was passed over."""
        self._client = client
        self._store = store
        self._settings = settings
        self._encryption = encryption
        self._skip_lost = skip_lost
        self._begin = begin
        self._position: int | None = None
        self._log_id = ""
        self._is_encrypted = False
        self._first_offset = 0
        self._opened: _OpenedSegment | None = None
        self._entries: deque[LogEntry] = deque()
        self._ready: deque[LogRecord] = deque()
        self._missing_ledger: int | None = None
        self._guard = BusyGuard(f"log {name!r}")
        self._entered = False
        self._loop: object | None = None
        """As in `LogRecords`."""

    @property
    def position(self) -> int | None:
        """The records before this offset come next; None before the first reading."""
        return self._position

    async def next_record(self) -> LogRecord | None:
        """The record before the one that was delivered last, or None before the first of the log."""
        with self._guard:
            while not self._ready:
                entry = await self._next()
                if entry is None:
                    return None
                self._ready.extend(records_of(entry))
            record = self._ready.pop()
            self._position = record.offset
            return record

    async def next_records(self, limit: int = 1024) -> list[LogRecord]:
        """As `next_record`, up to `limit` records of one entry. Empty before the first record of the log."""
        check_limit(limit)
        record = await self.next_record()
        if record is None:
            return []
        records = [record, *(self._ready.pop() for _ in range(min(limit - 1, len(self._ready))))]
        self._position = records[-1].offset
        return records

    async def _next(self) -> LogEntry | None:
        """The entry before the position, cut to end there."""
        while True:
            opened = self._opened
            if opened is None:
                if not await self._enter():
                    return None
                continue
            try:
                if not self._entries and opened.next_entry >= 0:
                    await self._fetch(opened)
            except NoSuchLedger:
                self._note_missing(opened.segment)
                await self._leave()
                continue
            if self._entries:
                return self._entries.pop()
            await self._finish(opened.segment)

    async def _enter(self) -> bool:
        """Open the segment of the record before the position. False: there is none."""
        if self._position is None:
            self._position = await self._begin()
        attempts = 0
        while attempts < STALE_ATTEMPTS:
            attempts += 1
            head = (await self._store.read(self.name, synced=self._missing_ledger is not None)).head
            check_identity(self.name, head, self._log_id)
            self._log_id, self._is_encrypted, position = head.log_id, bool(head.key_id), self._position
            if position < head.first_offset:
                raise OffsetTruncated(f"log {self.name!r}: the records before {position} were truncated; it begins at {head.first_offset}")
            if position == head.first_offset:
                return False
            self._first_offset = head.first_offset
            try:
                segment = await find_listed_segment(self._store, self.name, head, position - 1)
            except NoNode:
                continue  # A page was replaced since the head was read.
            if segment is None:
                raise OffsetGap(f"log {self.name!r} ends at {head.closed_end}; no segment holds offset {position - 1}")
            if segment.state is SegmentState.LOST and self._skip_lost:
                self._position = max(segment.first_offset, head.first_offset)
                self.lost.append((self._position, segment.end_offset - 1))
                attempts = 0  # This one has got on, and the number of segments is limited.
                continue
            check_not_lost(segment)
            try:
                await self._open(segment, position - 1 - segment.first_offset)
            except NoSuchLedger:
                self._note_missing(segment)
                continue
            return True
        raise OffsetGap(f"log {self.name!r}: its list changes too fast to find offset {self._position}")

    async def _open(self, segment: LogSegment, index: int) -> None:
        view = await self._client.open(segment.ledger_id, password=password_of(self._settings))
        try:
            is_open = segment.state is SegmentState.OPEN
            last_entry = view.last_add_confirmed if is_open else segment.last_entry
            entry_id = await find_holder(view, index, last_entry, 0 if is_open else segment.records)
        except BaseException:
            await view.aclose()
            raise
        self._opened = _OpenedSegment(segment, view, entry_id)

    def _note_missing(self, segment: LogSegment) -> None:
        """A ledger may be gone since the list was read. Raises NoSuchLedger if a current list has it."""
        if self._missing_ledger == segment.ledger_id:
            raise NoSuchLedger(f"log {self.name!r}: ledger {segment.ledger_id} from offset {segment.first_offset} on is gone")
        self._missing_ledger = segment.ledger_id

    async def _fetch(self, opened: _OpenedSegment) -> None:
        """Read the chunk of entries before those that were delivered."""
        segment, view, expected = opened.segment, opened.view, self._position
        assert expected is not None, "the position was searched"
        first = max(0, opened.next_entry + 1 - opened.chunk_entries)
        entries = await view.read(first, opened.next_entry)
        # A decoder sees the entries of a copied ledger in their order, also where a chunk is read backwards.
        decoder = self._encryption.decoder(self.name, self._log_id, is_encrypted=self._is_encrypted)
        copied = is_copied(view.metadata)
        decoded = [decoder.decode(entry, segment.first_offset, is_copied=copied) for entry in entries]
        made: deque[LogEntry] = deque()
        for entry, content in zip(reversed(entries), reversed(decoded), strict=True):
            if content.control is not None:
                continue
            first_offset = segment.first_offset + content.header.first_index
            end = first_offset + content.count
            if opened.seeking and first_offset < expected < end:
                end = expected
            check_continuity(f"log {self.name!r}, read backwards", expected, end, entry.ledger_id, entry.entry_id)
            opened.seeking, expected = False, first_offset
            slot = max(0, self._first_offset - first_offset)
            if first_offset + slot < end:
                made.appendleft(
                    LogEntry(
                        content,
                        first_offset=first_offset + slot,
                        slot=slot,
                        count=end - first_offset - slot,
                        ledger_id=entry.ledger_id,
                        entry_id=entry.entry_id,
                        epoch=epoch_of(view),
                    )
                )
        self._entries = made
        opened.next_entry = first - 1 if expected > self._first_offset else -1
        opened.chunk_entries = min(2 * opened.chunk_entries, self._settings.read_ahead_entries)

    async def _finish(self, segment: LogSegment) -> None:
        """Leave a segment whose first record was delivered. Raises OffsetGap: it did not hold what the list says."""
        position = self._position
        assert position is not None, "the position is known"
        if position > max(segment.first_offset, self._first_offset):
            raise OffsetGap(
                f"log {self.name!r}: ledger {segment.ledger_id} lacks offsets {segment.first_offset} to {position - 1}, which the list has"
            )
        await self._leave()

    async def aclose(self) -> None:
        """Stop reading. Idempotent; reading again continues before the last record that was delivered."""
        self._ready.clear()
        await self._leave()

    async def __aiter__(self) -> AsyncIterator[LogRecord]:
        self._loop = loop = object()
        try:
            while (record := await self.next_record()) is not None:
                yield record
        finally:
            if self._loop is loop and not self._entered:
                await self.aclose()

    async def __aenter__(self) -> BackwardReader:
        self._entered = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._entered = False
        await self.aclose()

    async def _leave(self) -> None:
        opened, self._opened = self._opened, None
        self._entries.clear()
        if opened is not None:
            await opened.view.aclose()
