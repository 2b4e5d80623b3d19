"""Entries as readers of a log deliver them, and how readers find and fetch them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from triplicate.errors import HandleClosed, OffsetGap, TriplicateError
from triplicate.ledger import Entry, LedgerMetadata
from triplicate.log.core.locate import EntrySearch
from triplicate.log.core.payload import EntryView, Headers, Producer
from triplicate.log.store.ledger_ports import LedgerView
from triplicate.log.store.segments import read_header
from triplicate.runtime import TaskScope

FIRST_CHUNK_ENTRIES = 2


class LogEntry:
    """Records of one entry, or a control record.

    A reader that begins or ends within an entry delivers only the records of its range: `values` and the other lists are cut. The columns
    of `view` are complete, and `slot` is the index of the range's first record in them.
    """

    __slots__ = ("_view", "count", "entry_id", "epoch", "first_offset", "ledger_id", "slot")

    def __init__(self, view: EntryView, *, first_offset: int, slot: int, count: int, ledger_id: int, entry_id: int, epoch: int) -> None:
        self._view = view
        self.first_offset = first_offset
        """Offset of the first record. For a control record, offset of the record that follows."""
        self.slot = slot
        self.count = count
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.epoch = epoch
        """Epoch of the writer of its segment; 0 in published segments."""

    @property
    def view(self) -> EntryView:
        """The whole entry, as columns."""
        return self._view

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        return self.first_offset + self.count

    @property
    def offsets(self) -> range:
        return range(self.first_offset, self.first_offset + self.count)

    @property
    def is_control(self) -> bool:
        return self._view.control is not None

    @property
    def control(self) -> Mapping[str, Any] | None:
        """The control record's fields with its `kind`, or None."""
        return self._view.control

    @property
    def wall_time_us(self) -> int:
        return self._view.header.wall_time_us

    @property
    def producer(self) -> Producer | None:
        return self._view.header.producer

    @property
    def preamble(self) -> bytes | None:
        return None if self._view.preamble is None else bytes(self._view.preamble)

    @property
    def values(self) -> list[bytes | None]:
        return self._view.values(self.slot, self.slot + self.count)

    @property
    def keys(self) -> list[bytes | None] | None:
        return self._view.keys(self.slot, self.slot + self.count)

    @property
    def headers(self) -> list[Headers] | None:
        return self._view.headers(self.slot, self.slot + self.count)

    @property
    def timestamps_us(self) -> list[int] | None:
        """Timestamps, µs since the epoch; None if the entry has none. `wall_time_us` is the time at which it was written."""
        return self._numbers(self._view.timestamps_us)

    @property
    def transaction_ids(self) -> list[int] | None:
        return self._numbers(self._view.transaction_ids)

    def _numbers(self, column: memoryview | None) -> list[int] | None:
        return None if column is None else column[self.slot : self.slot + self.count].tolist()

    def __repr__(self) -> str:
        what = f"control {self.control.get('kind')!r}" if self.control is not None else f"{self.count} records"
        return f"<LogEntry {self.first_offset}: {what}, ledger {self.ledger_id} entry {self.entry_id}>"


def check_continuity(name: str, expected_offset: int, found_offset: int, ledger_id: int, entry_id: int) -> None:
    """Check that the entry read is the one that follows.

    Raises:
        OffsetGap: records are missing before it.
    """
    if found_offset != expected_offset:
        raise OffsetGap(
            f"{name}: offset {expected_offset} was expected, but entry {entry_id} of ledger {ledger_id} holds {found_offset}: "
            "a segment is missing or damaged"
        )


def epoch_of(view: LedgerView) -> int:
    """The epoch in which a ledger was written; 0 for a published ledger."""
    return epoch_of_metadata(view.metadata)


def epoch_of_metadata(metadata: LedgerMetadata) -> int:
    """As `epoch_of`, from the metadata alone."""
    text = metadata.custom.get("epoch", b"0")
    return int(text) if text.isdigit() else 0


async def find_entry(view: LedgerView, index: int, last_entry: int, records: int, first_entry: int = 0) -> int:
    """Find the entry that holds a record.

    Args:
        index: of the record within the segment.
        last_entry: the last entry that may be read.
        records: the number of records up to it; 0 if unknown.
        first_entry: an entry that does not begin after the record.
    """
    if index == 0 or last_entry < 0:
        return 0
    return await find_holder(view, index, last_entry, records, first_entry)


async def find_holder(view: LedgerView, index: int, last_entry: int, records: int, first_entry: int = 0) -> int:
    """As `find_entry`; also of the first record it is the entry itself, and no control entry before it."""
    search = EntrySearch(index, first_entry, last_entry, records)
    while (entry_id := search.next_entry()) is not None:
        header = await read_header(view, entry_id)
        search.record_header(entry_id, header.first_index, header.count)
    return search.entry


class Chunks:
    """Entries of a ledger one by one. They are fetched in chunks that grow up to `limit` entries, one chunk ahead."""

    def __init__(self, view: LedgerView, first_entry: int, last_entry: int, limit: int) -> None:
        self._view = view
        self._next_entry = first_entry
        self._last_entry = last_entry
        self._limit = limit
        self._size = min(FIRST_CHUNK_ENTRIES, limit)
        self._ready: deque[Entry] = deque()
        self._fetching: asyncio.Task[Sequence[Entry] | TriplicateError] | None = None
        self._fetching_from = first_entry
        # A failed fetch is raised by `next` and not by the scope.
        self._scope = TaskScope(f"read ledger {view.ledger_id}", on_failure=lambda error: None)

    async def next(self) -> Entry | None:
        """The next entry, or None after the last. Cancelling loses nothing. Raises as `LedgerView.read`; the next call reads again."""
        if not self._ready:
            if self._fetching is None:
                self._fetch()
            if self._fetching is None:
                return None
            fetched = await asyncio.shield(self._fetching)
            self._fetching = None
            if isinstance(fetched, TriplicateError):
                self._next_entry = self._fetching_from
                raise fetched
            self._ready.extend(fetched)
            self._fetch()
        return self._ready.popleft()

    def next_nowait(self) -> Entry | None:
        """The next entry if it has been fetched, else None."""
        return self._ready.popleft() if self._ready else None

    def _fetch(self) -> None:
        if self._next_entry > self._last_entry:
            return
        last = min(self._last_entry, self._next_entry + self._size - 1)
        self._fetching_from = self._next_entry
        self._fetching = self._scope.spawn(self._read(self._next_entry, last), name="fetch")
        self._next_entry = last + 1
        self._size = min(self._size * 2, self._limit)

    async def _read(self, first: int, last: int) -> Sequence[Entry] | TriplicateError:
        # An error is returned here. Raised by the task it would close the scope, so that nothing could be read after it.
        try:
            return await self._view.read(first, last)
        except TriplicateError as error:
            return error

    async def aclose(self) -> None:
        """Stop fetching. Idempotent."""
        await self._scope.aclose()
        if self._fetching is not None and self._fetching.done() and not self._fetching.cancelled():
            self._fetching.exception()


class BusyGuard:
    """Rejects concurrent use of an object that supports one user at a time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._busy = False

    def __enter__(self) -> None:
        if self._busy:
            raise HandleClosed(f"{self._what} is being read already: one reader serves one caller at a time")
        self._busy = True

    def __exit__(self, *error: object) -> None:
        self._busy = False
