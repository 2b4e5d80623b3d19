"""Following a ledger as it grows.

A bookie keeps a long poll and answers with the next entry when it is confirmed (`read.long_poll`). Entries that lie further behind are read
in ranges; entries that are read also show how far the ledger is confirmed. While many entries are behind, the next range is read as well
before the present one is delivered, so that all copies deliver without a pause.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Protocol

from triplicate.client.context import ClientContext
from triplicate.client.read.long_poll import LongPoller, PolledLedger
from triplicate.client.read.range_read import BegunRead
from triplicate.errors import ConnectionLost, HandleClosed, TriplicateError
from triplicate.ledger import Entry, EntryCodec
from triplicate.metadata import Watch
from triplicate.runtime import timeout_at

FIRST_BATCH_ENTRIES = 16
METADATA_WAIT_S = 2.0
"""How long a tail waits for the metadata before it continues with what it knows; the next attempt comes `METADATA_REST_S` later."""
METADATA_REST_S = 5.0


class FollowedLedger(PolledLedger, Protocol):
    """The part of a reader that a tail uses."""

    ledger_id: int

    @property
    def is_closed(self) -> bool:
        """Whether the ledger, as last read, is closed."""

    @property
    def entries_at_a_time(self) -> int:
        """The most entries that one read has in flight."""

    def begin_confirmed(self, first_entry_id: int, last_entry_id: int) -> BegunRead:
        """Begin to read entries that are known to be confirmed."""

    async def finish_confirmed(self, begun: BegunRead) -> list[Entry]:
        """The entries of a read that was begun."""

    async def refresh_metadata(self) -> None:
        """Read the metadata again."""

    def tail_ended(self, tail: Tail) -> None:
        """The tail was closed."""


class Tail:
    """Yields the entries of a ledger from a first one on, each once it is known to be confirmed; ends with a closed ledger.

    Made by `LedgerReader.tail`. One task iterates at a time. Cancelling an iteration loses no entry.

    Raises while iterating: ReadFailed when no replica of a confirmed entry delivers, NoSuchLedger when the ledger was deleted. The
    iteration may continue after ReadFailed. While the metadata store is away, the tail continues with the metadata that it knows.
    """

    def __init__(self, context: ClientContext, reader: FollowedLedger, codec: EntryCodec, first_entry_id: int) -> None:
        self._context = context
        self._reader = reader
        self._next = first_entry_id
        self._ready: deque[Entry] = deque()
        self._ahead: BegunRead | None = None
        """A read of the entries from `_next` on, in flight."""
        self._batch = FIRST_BATCH_ENTRIES
        self._poller = LongPoller(context, reader, codec)
        self._watch: Watch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stale = True
        self._refresh_at = 0.0
        self._iterating = False
        self._closed = False
        self._failure: TriplicateError | None = None

    def __aiter__(self) -> Tail:
        return self

    async def __anext__(self) -> Entry:
        await self._fill()
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def next_entries(self, limit: int = 1024) -> list[Entry]:
        """All entries that are available, at least one and at most `limit`; waits for the first. Empty at the end of the ledger."""
        await self._fill()
        ready = self._ready
        return [ready.popleft() for _ in range(min(limit, len(ready)))]

    async def _fill(self) -> None:
        """Wait until an entry is ready, or the ledger is at its end."""
        if self._iterating:
            raise HandleClosed("two tasks iterate over one tail; make a tail for each")
        self._iterating = True
        try:
            while not (self._ready or self._closed) and await self._advance():
                pass
        finally:
            self._iterating = False

    async def _advance(self) -> bool:
        """Make one step: refresh, read or wait. False at the end of the ledger."""
        reader = self._reader
        if self._failure is not None:
            raise self._failure
        if self._stale and self._context.host.clock.monotonic() >= self._refresh_at:
            await self._refresh()
        if self._next <= reader.last_add_confirmed:
            await self._read_range()
        elif reader.is_closed:
            return False
        else:
            await self._wait()
        return True

    async def _refresh(self) -> None:
        """Read the metadata again; the watch is armed first, so that no change is missed."""
        if self._watch is None:
            self._watch = self._context.metadata.ledgers.watch(self._reader.ledger_id)
            self._watching = self._context.scope.spawn(
                self._watch_metadata(self._watch), name=f"watch ledger {self._reader.ledger_id} for a tail"
            )
        self._stale = False
        clock = self._context.host.clock
        try:
            async with timeout_at(clock.monotonic() + METADATA_WAIT_S):
                await self._reader.refresh_metadata()
        except ConnectionLost:
            self._stale = True  # Continue with the metadata that is known, and read it again at the next step.
        except TimeoutError:
            # A silent store would delay each step, so the metadata is read again only after a while.
            self._stale, self._refresh_at = True, clock.monotonic() + METADATA_REST_S
        except BaseException:
            # The caller was cancelled during the read: the change that made the metadata stale has not been seen yet.
            self._stale = True
            raise

    async def _watch_metadata(self, watch: Watch) -> None:
        try:
            while not self._closed and not self._reader.is_closed:
                await watch.changed()
                self._stale = True
                self._poller.wake()
        except TriplicateError as error:
            self._failure = error
            self._poller.wake()

    async def _read_range(self) -> None:
        reader, begun = self._reader, self._ahead
        self._ahead = None
        if begun is None:
            begun = reader.begin_confirmed(self._next, min(self._next + self._batch - 1, reader.last_add_confirmed))
        following = begun.last_entry_id + 1
        if following + self._batch <= reader.last_add_confirmed:
            self._ahead = reader.begin_confirmed(following, following + self._batch - 1)
        try:
            entries = await reader.finish_confirmed(begun)
        except BaseException:
            # The iteration may continue, and then reads the same entries again.
            self._drop_ahead()
            raise
        if self._closed:
            self._drop_ahead()
        self._next = following
        self._ready.extend(entries)
        self._poller.note_progress()
        average = sum(len(entry.payload) for entry in entries) // len(entries) + 1
        self._batch = max(1, min(2 * self._batch, reader.entries_at_a_time, self._range_bytes // average))

    @property
    def _range_bytes(self) -> int:
        """Half of the window, since two ranges are held at a time."""
        return self._context.settings.read_window_bytes // 2

    def _drop_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None

    async def _wait(self) -> None:
        """Wait until there may be news. Where a poll shows that further entries are confirmed, they are read too, all in one request."""
        entry = await self._poller.wait(self._next)
        if entry is not None:
            self._next += 1
            self._ready.append(entry)
            self._context.metrics.read.inc()
            self._context.metrics.read_bytes.inc(len(entry.payload))
            if self._next <= self._reader.last_add_confirmed:
                await self._read_range()

    async def aclose(self) -> None:
        """Stop; an iteration that waits ends. Idempotent."""
        self._closed = True
        self._drop_ahead()
        self._reader.tail_ended(self)
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._poller.wake()

    async def __aenter__(self) -> Tail:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
