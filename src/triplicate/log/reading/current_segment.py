"""The segment that a reader is in: its open ledger, and the entries that it delivers from there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from triplicate.config.log_settings import LogClientSettings
from triplicate.ledger import Entry
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.reading.log_entries import Chunks, epoch_of, find_entry
from triplicate.log.store.ledger_ports import LedgerClient, LedgerTail, LedgerView
from triplicate.log.store.log_encryption import is_copied
from triplicate.log.store.segments import password_of


class EntrySource(Protocol):
    """Entries of a ledger, one by one."""

    async def next(self) -> Entry | None:
        """The next entry, or None after the last. Cancelling loses nothing."""

    def next_nowait(self) -> Entry | None:
        """The next entry if it has been fetched, else None."""

    async def aclose(self) -> None:
        """Stop fetching. Idempotent."""


class TailEntries:
    """Entries of an open ledger as they are confirmed (EntrySource)."""

    def __init__(self, tail: LedgerTail) -> None:
        self._tail = tail
        self._ready: deque[Entry] = deque()
        """Fetched and not delivered yet."""

    async def next(self) -> Entry | None:
        if not self._ready:
            self._ready.extend(await self._tail.next_entries())
        return self.next_nowait()

    def next_nowait(self) -> Entry | None:
        return self._ready.popleft() if self._ready else None

    async def aclose(self) -> None:
        await self._tail.aclose()


@dataclass(slots=True)
class CurrentSegment:
    """See the module's text; `open_segment` makes one."""

    segment: LogSegment
    view: LedgerView
    source: EntrySource
    epoch: int
    is_copied: bool
    """Whether its entries were copied from other ledgers."""
    seeking: bool
    """Whether the position was searched within the segment, so that entries before it may be fetched first."""

    async def aclose(self) -> None:
        """Stop fetching, and close the ledger."""
        await self.source.aclose()
        await self.view.aclose()


async def open_segment(client: LedgerClient, settings: LogClientSettings, segment: LogSegment, position: int) -> CurrentSegment:
    """Open a segment's ledger and find the entry of an offset in it.

    Raises:
        NoSuchLedger: the ledger does not exist. An error of reading it.
    """
    view = await client.open(segment.ledger_id, password=password_of(settings))
    try:
        index = position - segment.first_offset
        source: EntrySource
        if segment.state is SegmentState.OPEN:
            first_entry = 0 if index == 0 else await find_entry(view, index, view.last_add_confirmed, 0)
            source = TailEntries(view.tail(first_entry))
        else:
            first_entry = await find_entry(view, index, segment.last_entry, segment.records)
            source = Chunks(view, first_entry, segment.last_entry, settings.read_ahead_entries)
    except BaseException:
        await view.aclose()
        raise
    return CurrentSegment(segment, view, source, epoch_of(view), is_copied(view.metadata), seeking=index > 0)
