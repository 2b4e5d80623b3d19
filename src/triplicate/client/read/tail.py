"""Following a ledger as it grows.

Inside, a bookie keeps a long poll and answers with the next entry when it is confirmed (`client.listening`); what lies further behind is
read in ranges, and entries that are read tell how far the ledger got. Whoever iterates sees none of that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from triplicate.client.context import ClientContext
from triplicate.client.read.long_poll import LongPoller
from triplicate.errors import ConnectionLost, HandleClosed, TriplicateError
from triplicate.ledger import Entry, EntryCodec
from triplicate.metadata import Watch
from triplicate.runtime import timeout_at

if TYPE_CHECKING:
    from triplicate.client.read.ledger_reader import LedgerReader

FIRST_BATCH_ENTRIES = 16
METADATA_WAIT_S = 2.0
"""How long a tail waits for the metadata before it goes on with what is known; the next attempt comes `METADATA_REST_S` later."""
METADATA_REST_S = 5.0


class Tail:
    """Yields the entries of a ledger from one on, each once it is known to be confirmed; ends when the ledger is closed and read up.

    Made by `LedgerReader.tail`. One task iterates at a time. Cancelling an iteration loses no entry.

    Raises while iterating: ReadFailed when no replica of a confirmed entry delivers, NoSuchLedger when the ledger was deleted; one
    may iterate on after ReadFailed. What waits for a metadata store that is away goes on with what is known.
    """

    def __init__(self, context: ClientContext, reader: LedgerReader, codec: EntryCodec, first_entry_id: int) -> None:
        self._context = context
        self._reader = reader
        self._next = first_entry_id
        self._ready: deque[Entry] = deque()
        self._batch = FIRST_BATCH_ENTRIES
        self._listening = LongPoller(context, reader, codec)
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
        """All entries that are at hand, at least one, at most `limit`; waits for the first. Empty at the end of the ledger."""
        await self._fill()
        ready = self._ready
        return [ready.popleft() for _ in range(min(limit, len(ready)))]

    async def _fill(self) -> None:
        """Return when an entry is ready, or none will ever be."""
        if self._iterating:
            raise HandleClosed("two tasks iterate over one tail; make a tail for each")
        self._iterating = True
        try:
            while not (self._ready or self._closed) and await self._go_on():
                pass
        finally:
            self._iterating = False

    async def _go_on(self) -> bool:
        """One step: learn, read or wait. False at the end of the ledger."""
        reader = self._reader
        if self._failure is not None:
            raise self._failure
        if self._stale and self._context.host.clock.monotonic() >= self._refresh_at:
            await self._refresh()
        if self._next <= reader.last_add_confirmed:
            await self._read_on()
        elif reader.is_closed:
            return False
        else:
            await self._wait()
        return True

    async def _refresh(self) -> None:
        """Read the metadata again; the watch is armed before, so no change is missed."""
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
            self._stale = True  # Go on with what is known, and ask again at the next step.
        except TimeoutError:
            # A silent store takes its time at each step, so it is asked again only after a while.
            self._stale, self._refresh_at = True, clock.monotonic() + METADATA_REST_S
        except BaseException:
            # Whoever iterates gave up while the metadata was on its way: the change that made it stale has not been seen yet.
            self._stale = True
            raise

    async def _watch_metadata(self, watch: Watch) -> None:
        try:
            while not self._closed and not self._reader.is_closed:
                await watch.changed()
                self._stale = True
                self._listening.wake_up()
        except TriplicateError as error:
            self._failure = error
            self._listening.wake_up()

    async def _read_on(self) -> None:
        first = self._next
        last = min(first + self._batch - 1, self._reader.last_add_confirmed)
        entries = await self._reader.read_confirmed(first, last)
        self._next = last + 1
        self._ready.extend(entries)
        self._listening.had_news()
        settings = self._context.settings
        average = sum(len(entry.payload) for entry in entries) // len(entries) + 1
        self._batch = max(1, min(2 * self._batch, self._reader.entries_at_a_time, settings.read_window_bytes // average))

    async def _wait(self) -> None:
        """Return when there may be news."""
        entry = await self._listening.wait(self._next)
        if entry is not None:
            self._next += 1
            self._ready.append(entry)
            self._context.metrics.read.inc()
            self._context.metrics.read_bytes.inc(len(entry.payload))

    async def aclose(self) -> None:
        """Stop; a waiting iteration ends. Idempotent."""
        self._closed = True
        self._reader.tail_ended(self)
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._listening.wake_up()

    async def __aenter__(self) -> Tail:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
