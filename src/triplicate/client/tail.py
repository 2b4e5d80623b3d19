"""Following a ledger as it grows.

Inside, bookies are asked for their last entry, one at a time in turn, with a pause that adapts to what comes; entries that are read
tell as much. Whoever iterates sees none of that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from triplicate.client.pool import Services
from triplicate.errors import BookieError, ConnectionLost, DigestMismatch, HandleClosed, TriplicateError
from triplicate.ledger import Entry, EntryCodec
from triplicate.metadata import Watch
from triplicate.wire import LAST_ENTRY, ReadResponse, Status

if TYPE_CHECKING:
    from triplicate.client.reader import LedgerReader

FIRST_BATCH_ENTRIES = 16


class Tail:
    """Yields the entries of a ledger from one on, each once it is known to be confirmed; ends when the ledger is closed and read up.

    Made by `LedgerReader.tail`. One task iterates at a time. Cancelling an iteration loses no entry.

    Raises while iterating: ReadFailed when no replica of a confirmed entry delivers, NoSuchLedger when the ledger was deleted; one
    may iterate on after ReadFailed. What waits for a metadata store that is away goes on with what is known.
    """

    def __init__(self, services: Services, reader: LedgerReader, codec: EntryCodec, first_entry_id: int) -> None:
        self._services = services
        self._reader = reader
        self._codec = codec
        self._next = first_entry_id
        self._ready: deque[Entry] = deque()
        self._batch = FIRST_BATCH_ENTRIES
        self._turn = 0
        self._asked: dict[str, None] = {}
        self._pause_s = services.settings.tail_wait_minimum_s
        self._wake: asyncio.Future[None] | None = None
        self._watch: Watch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stale = True
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
        if self._stale:
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
            self._watch = self._services.metadata.ledgers.watch(self._reader.ledger_id)
            self._watching = self._services.scope.spawn(
                self._watch_metadata(self._watch), name=f"watch ledger {self._reader.ledger_id} for a tail"
            )
        self._stale = False
        try:
            await self._reader.refresh_metadata()
        except ConnectionLost:
            self._stale = True  # Go on with what is known, and ask again at the next step.

    async def _watch_metadata(self, watch: Watch) -> None:
        try:
            while not self._closed and not self._reader.is_closed:
                await watch.changed()
                self._stale = True
                self._wake_up()
        except TriplicateError as error:
            self._failure = error
            self._wake_up()

    async def _read_on(self) -> None:
        first = self._next
        last = min(first + self._batch - 1, self._reader.last_add_confirmed)
        entries = await self._reader.read_confirmed(first, last)
        self._next = last + 1
        self._ready.extend(entries)
        self._pause_s = self._services.settings.tail_wait_minimum_s
        settings = self._services.settings
        average = sum(len(entry.payload) for entry in entries) // len(entries) + 1
        self._batch = max(1, min(2 * self._batch, settings.read_window_entries, settings.read_window_bytes // average))

    async def _wait(self) -> None:
        """Ask one bookie, and return when there is news or the pause is over."""
        clock, settings = self._services.host.clock, self._services.settings
        known = self._reader.last_add_confirmed
        self._wake = asyncio.get_running_loop().create_future()
        self._ask()
        timer = clock.call_at(clock.monotonic() + self._pause_s, self._wake_up)
        try:
            await self._wake
        finally:
            timer.cancel()
        if self._reader.last_add_confirmed > known:
            self._pause_s = settings.tail_wait_minimum_s
        else:
            self._pause_s = min(2 * self._pause_s, max(settings.tail_wait_minimum_s, settings.tail_wait_maximum_s))

    def _ask(self) -> None:
        """Ask the next bookie in turn that does not owe an answer. One answer is enough: the word of any bookie with a good digest
        is what the writer once said.
        """
        ensemble = self._reader.metadata.last_segment.ensemble
        for _ in ensemble:
            bookie_id = ensemble[self._turn % len(ensemble)]
            self._turn += 1
            if bookie_id not in self._asked:
                channel = self._services.pool.channel(bookie_id)
                self._asked[bookie_id] = None
                channel.read(self._codec.ledger_id, LAST_ENTRY, self._answered, bookie_id)
                return

    def _answered(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        self._asked.pop(bookie_id, None)
        if response is None or response.status != Status.OK or response.body is None:
            return
        try:
            entry = self._codec.decode(response.body)
        except DigestMismatch:
            self._services.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            return
        self._reader.learn(entry.last_add_confirmed)
        if self._next <= self._reader.last_add_confirmed:
            self._wake_up()

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

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
        self._wake_up()

    async def __aenter__(self) -> Tail:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
