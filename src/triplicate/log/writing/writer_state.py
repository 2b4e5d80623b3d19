"""The state of a log's writer as its users see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable

from triplicate.log.core.writer_machine import WriterMachine
from triplicate.log.writing.entry_builder import EntryBuilder
from triplicate.log.writing.segment_transitions import ListedEntry, PublishSource

Waiter = asyncio.Future[range] | None


class WriterState:
    """The properties of `LogWriter`, and what it does beside its open segment."""

    def __init__(self, machine: WriterMachine[Waiter], source: PublishSource) -> None:
        self._machine = machine
        self._source = source
        self._builder: EntryBuilder | None = None
        """The records that wait to become an entry."""

    async def append_listed(self, entries: AsyncIterable[ListedEntry]) -> range:
        """Append any number of entries, all or none: readers see none of them, or all. One call at a time. Returns the records' offsets.

        They are written to a ledger of their own, which becomes a segment of the log at a roll.

        Raises:
            UsageError: others publish to this log. NotEnoughBookies, RecordTooLarge, errors of `entries` and of the ledger: nothing was
            appended. LogFenced, OutcomeUnknown.
        """
        return await self._source.append(entries)

    @property
    def next_offset(self) -> int:
        """Offset of the next record to be accepted, unless publishers' records come before it."""
        return self._machine.next_offset + (len(self._builder) if self._builder is not None else 0)

    @property
    def acknowledged_offset(self) -> int:
        """Offset after the last acknowledged record."""
        return self._machine.acknowledged_offset

    def waited_s(self, now: float) -> float:
        """For how long the oldest entry has waited for its acknowledgement, in seconds; 0 if none waits.

        Args:
            now: seconds of the monotonic clock.
        """
        since = self._machine.waits_since
        return 0.0 if since is None else now - since

    @property
    def ledger_id(self) -> int:
        """The open segment's ledger."""
        return self._machine.segment.listed.ledger_id

    @property
    def is_reduced(self) -> bool:
        """Whether the open segment has fewer copies than the log asks for, because bookies are short."""
        return self._machine.segment.listed.reduced is not None

    @property
    def failure(self) -> BaseException | None:
        """Why it stopped, or None while it works."""
        return self._machine.failure

    @property
    def can_roll(self) -> bool:
        """Whether the segment accepts entries and the writer is not about to end."""
        return self._machine.can_roll

    @property
    def rolls(self) -> int:
        """The number of segments that this writer has opened after its first."""
        return self._machine.rolls

    @property
    def repairs(self) -> int:
        """The number of segments that had to be recovered because they broke."""
        return self._machine.repairs

    @property
    def admitted(self) -> int:
        """The number of records of publishers that were listed at its rolls: they lie between the records of this writer."""
        return self._machine.published_between
