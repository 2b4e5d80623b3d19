"""The records of a log one by one, from a position on: to the end, or without end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from triplicate.errors import HandleClosed, TriplicateError
from triplicate.log.reading.log_entries import BusyGuard, LogEntry
from triplicate.log.reading.log_reader import LogReader
from triplicate.log.reading.log_record import LogRecord, check_limit, records_of
from triplicate.runtime import Clock, TaskScope, deadline_after, timeout_at


class LogRecords:
    """Made by `Logs.records`. Nothing is read before the first record is asked for.

    ``async for record in records`` needs no ``async with``: the loop closes the reader that it opens, also when it is left early.
    Another loop continues behind the last record that was delivered. Within ``async with records:`` the reader stays open between loops.

    Raises while reading: as `LogReader`; the position stays, so reading again continues there.

    Args:
        begin: opens a reader at an offset, or for None where the caller asked to begin; returns it with the offset to stop before, or None.
    """

    def __init__(self, name: str, clock: Clock, begin: Callable[[int | None], Awaitable[tuple[LogReader, int | None]]]) -> None:
        self.name = name
        self._clock = clock
        self._begin = begin
        self._reader: LogReader | None = None
        self._end: int | None = None
        self._position: int | None = None
        self._ready: deque[LogRecord] = deque()
        """Records of the entry that was read last, not delivered yet."""
        self._scope: TaskScope | None = None
        self._fetching: asyncio.Task[LogEntry | TriplicateError] | None = None
        """The next entry, for which a call with a time limit did not wait to the end. There is nothing in `_ready` then."""
        self._guard = BusyGuard(f"log {name!r}")
        self._entered = False
        self._loop: object | None = None
        """The ``async for`` that iterates: one that was left is closed later, and must not close the reader of the next."""

    @property
    def position(self) -> int | None:
        """Offset of the next record to be delivered; None before the first reading."""
        return self._position

    async def next_record(self, timeout_s: float | None = None) -> LogRecord | None:
        """The next record; None after the last where reading ends, or if there is none within the time. Cancelling loses nothing.

        Args:
            timeout_s: None: no limit; 0: do not wait. A call that ends without a record leaves it on its way, so that calls with a short
                limit get further, too.
        """
        if not self._ready and not await self._fetch(timeout_s):
            return None
        record = self._ready.popleft()
        self._position = record.offset + 1
        return record

    async def next_records(self, limit: int = 1024, timeout_s: float | None = None) -> list[LogRecord]:
        """The next records: waits for one, and adds those that were fetched with it. Empty where `next_record` returns None."""
        check_limit(limit)
        if not self._ready and not await self._fetch(timeout_s):
            return []
        assert self._reader is not None, "records come from the reader"
        while len(self._ready) < limit and not self._is_at_end() and (entry := await self._reader.next_entry(0)) is not None:
            self._add(entry)
        records = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self._position = records[-1].offset + 1
        return records

    async def open(self) -> int:
        """Open the reader, unless it is open. Returns the position."""
        if self._reader is None:
            self._ready.clear()
            self._reader, self._end = await self._begin(self._position)
            self._position = self._reader.position
        assert self._position is not None, "an open reader has a position"
        return self._position

    async def _fetch(self, timeout_s: float | None) -> bool:
        """Read until a record is there. False: there is none."""
        with self._guard:
            await self.open()
            reader = self._reader
            assert reader is not None, "it was opened"
            while not self._ready:
                if self._fetching is None and self._is_at_end():
                    return False
                entry = await self._next_entry(reader, timeout_s)
                if entry is None:
                    return False
                self._add(entry)
            return True

    async def _next_entry(self, reader: LogReader, timeout_s: float | None) -> LogEntry | None:
        """The next entry, or None if there is none within the time: then its task goes on, and the next call gets what it brings."""
        if self._fetching is None:
            if timeout_s is None:
                return await reader.next_entry()
            entry = await reader.next_entry(0)
            if entry is not None:
                return entry
            if self._scope is None:
                self._scope = TaskScope(f"read log {self.name}", on_failure=lambda error: None)  # The caller gets it.
            self._fetching = self._scope.spawn(_fetched(reader), name="fetch")
        fetching = self._fetching
        if not fetching.done():
            try:
                async with timeout_at(deadline_after(self._clock, timeout_s)):
                    await asyncio.wait([fetching])
            except TimeoutError:
                return None
        self._fetching = None
        if fetching.cancelled():
            raise HandleClosed(f"the reading of log {self.name!r} was ended meanwhile")
        fetched = fetching.result()
        if isinstance(fetched, TriplicateError):
            raise fetched
        return fetched

    def _is_at_end(self) -> bool:
        return self._end is not None and self._reader is not None and self._reader.position >= self._end

    def _add(self, entry: LogEntry) -> None:
        end = self._end
        self._ready.extend(record for record in records_of(entry) if end is None or record.offset < end)

    async def aclose(self) -> None:
        """Stop reading. Idempotent; reading again continues behind the last record that was delivered."""
        reader, self._reader = self._reader, None
        scope, self._scope, self._fetching = self._scope, None, None
        self._ready.clear()
        try:
            if scope is not None:
                await scope.aclose()
        finally:
            if reader is not None:
                await reader.aclose()

    async def __aiter__(self) -> AsyncIterator[LogRecord]:
        self._loop = loop = object()
        try:
            while (record := await self.next_record()) is not None:
                yield record
        finally:
            if self._loop is loop and not self._entered:
                await self.aclose()

    async def __aenter__(self) -> LogRecords:
        self._entered = True
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._entered = False
        await self.aclose()


async def _fetched(reader: LogReader) -> LogEntry | TriplicateError:
    """The next entry of a reader. An error is returned: raised by a task, it would close the scope of the task."""
    try:
        return await anext(reader)
    except TriplicateError as error:
        return error
