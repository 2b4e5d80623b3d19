"""Iterators over entries. Entries pass between the threads in batches, because a thread switch costs more than an entry."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Self, cast

from triplicate.errors import TriplicateError

if TYPE_CHECKING:
    from types import TracebackType

    from triplicate.blocking.background_loop import BackgroundLoop
    from triplicate.client import Tail
    from triplicate.kv import Item, KeyChange, KeyPage, KeyRange, KeyWatch
    from triplicate.ledger import Entry
    from triplicate.log import BackwardReader, LogEntry, LogRecord, LogRecords, RangeReader

TAIL_BATCH_ENTRIES = 1024
RANGE_BATCH_ENTRIES = 64
RANGE_BATCH_BYTES = 2 * 1024 * 1024
"""Limits on one batch of `EntryBatches`. The last entry may exceed the limit in bytes."""


class BlockingTail:
    """`Tail` as an iterator. Entries pass between the threads in batches. Raises as `Tail.next_entries`."""

    def __init__(self, loop: BackgroundLoop, tail: Tail) -> None:
        self._loop = loop
        self._tail = tail
        self._ready: deque[Entry] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Entry:
        if not self._ready:
            self._ready.extend(self._loop.call(self._tail.next_entries(TAIL_BATCH_ENTRIES)))
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        """Stop the tail. Idempotent."""
        self._loop.call(self._tail.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RecordBatches:
    """The records of a `LogRecords` or `BackwardReader` one by one. Its reader is closed at the end."""

    def __init__(self, loop: BackgroundLoop, reader: LogRecords | BackwardReader) -> None:
        self._loop = loop
        self._reader = reader
        self._ready: deque[LogRecord] = deque()

    def next_record(self, timeout_s: float | None = None) -> LogRecord | None:
        """The next record, or None at the end, or if there is none within the time."""
        if not self._ready:
            self._ready.extend(self._loop.call(self._fetch(TAIL_BATCH_ENTRIES, timeout_s)))
        return self._ready.popleft() if self._ready else None

    def next_records(self, limit: int, timeout_s: float | None = None) -> list[LogRecord]:
        """Up to `limit` records, those that were fetched before first."""
        if not self._ready or limit < 1:  # Which is refused there.
            return self._loop.call(self._fetch(limit, timeout_s))
        return [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]

    def __next__(self) -> LogRecord:
        record = self.next_record()
        if record is None:
            raise StopIteration
        return record

    async def _fetch(self, limit: int, timeout_s: float | None) -> list[LogRecord]:
        reader = self._reader
        # Only `LogRecords` waits, and so only its twin has a time limit.
        records = await (reader.next_records(limit) if timeout_s is None else cast("LogRecords", reader).next_records(limit, timeout_s))
        if not records and timeout_s is None:
            await reader.aclose()
        return records


class EntryBatches:
    """The entries of a `RangeReader` as an iterator.

    An error of the reader is raised after the entries that were read before it.
    """

    def __init__(self, loop: BackgroundLoop, reader: RangeReader) -> None:
        self._loop = loop
        self._reader = reader
        self._ready: deque[LogEntry] = deque()
        self._error: TriplicateError | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> LogEntry:
        if not self._ready and self._error is None:
            self._loop.call(self._fill())
        if self._ready:
            return self._ready.popleft()
        if self._error is None:
            raise StopIteration
        error, self._error = self._error, None
        raise error

    def clear(self) -> None:
        """Discard the entries and the error that were fetched and not returned yet."""
        self._ready.clear()
        self._error = None

    async def _fill(self) -> None:
        size = 0
        try:
            while len(self._ready) < RANGE_BATCH_ENTRIES and size < RANGE_BATCH_BYTES:
                entry = await self._reader.next_entry()
                if entry is None:
                    return
                self._ready.append(entry)
                size += entry.view.header.raw_length
        except TriplicateError as error:
            self._error = error


class BlockingKeyWatch:
    """`KeyWatch` as an iterator, which waits for the next changes. Raises as `KeyWatch`."""

    def __init__(self, loop: BackgroundLoop, watch: KeyWatch) -> None:
        self._loop = loop
        self._watch = watch

    @property
    def position(self) -> int:
        """All changes before this position were given. A watch from here goes on without a gap."""
        return self._watch.position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Sequence[KeyChange]:
        changes = self._loop.call(self._next(None))
        if not changes:
            raise StopIteration
        return changes

    def next_changes(self, timeout_s: float) -> Sequence[KeyChange]:
        """The next changes; none if there are none within the time, in seconds, or the watch is closed."""
        return self._loop.call(self._next(timeout_s))

    def close(self) -> None:
        """End the watch, also where another thread waits for it. Idempotent."""
        self._loop.call(self._watch.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def _next(self, timeout_s: float | None) -> Sequence[KeyChange]:
        try:
            async with asyncio.timeout(timeout_s):
                return await anext(self._watch)
        except (StopAsyncIteration, TimeoutError):
            return ()


def items_of_pages(scan: Callable[[KeyRange], KeyPage], keys: KeyRange) -> Iterator[Item]:
    """The keys of a range with their records. One page passes between the threads at a time, since a batch of items has no limit in bytes.

    Args:
        scan: reads the first page of a range.
    """
    rest: KeyRange | None = keys
    while rest is not None:
        page = scan(rest)
        yield from page.items
        rest = None if page.cursor is None else rest.from_cursor(page.cursor)
