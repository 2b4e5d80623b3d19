"""Flushes: the frozen half of the write cache becomes durable in entry logs and index, then the journals' marks move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from triplicate.bookie.core.journal_format import GroupPosition
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.core.ledger_table import LedgerTable
from triplicate.bookie.core.write_cache import Frozen, WriteCache
from triplicate.bookie.journal.journal import Journal
from triplicate.bookie.storage.ledger_storage import LedgerStorage, WrittenFlush
from triplicate.runtime import fault_point


class FlushMark(NamedTuple):
    """Where a journal's mark moves after a flush: everything up to the position was in the cache when it was frozen."""

    journal: Journal
    position: GroupPosition


class Flusher:
    """Writes one flush at a time, and numbers them. On the writer's worker, unless a method says otherwise.

    Args:
        flush_number: number of the newest durable flush.
        on_flush: called with the memory that a flush freed, in bytes.
    """

    def __init__(
        self, cache: WriteCache, ledgers: LedgerTable, stored: LedgerStorage, flush_number: int, on_flush: Callable[[int], None]
    ) -> None:
        self.flush_number = flush_number
        """Number of the newest durable flush."""
        self.flushes = 0
        """Flushes that were released."""
        self._cache = cache
        self._ledgers = ledgers
        self._stored = stored
        self._on_flush = on_flush
        self._written: WrittenFlush | None = None
        """Progress of the flush that was tried last and has not ended."""

    def durable_flush(self) -> int:
        """Number of the newest durable flush; called here, no flush is running that may have missed a deletion."""
        return self.flush_number

    @fault_point("bookie.flush.writing")
    def write(self, frozen: Frozen, marks: Sequence[FlushMark]) -> None:
        """Write entries and states, then the index, then the marks. The order of these three steps makes a crash harmless. A retry
        continues where the last attempt failed.
        """
        written = self._written
        if written is None or not self._still_holds(written, frozen):
            written = self._written = self._stored.write_logs(self._next_number(), frozen)
        if not written.indexed:
            self._stored.write_index(written)
            self.flush_number = written.flush_number
        for mark in marks:
            mark.journal.write_mark(mark.position, written.flush_number)
        self._written = None

    def _still_holds(self, written: WrittenFlush, frozen: Frozen) -> bool:
        """Whether the rows of a flush that is already in the logs are still valid."""
        return written.indexed or (written.flush_number > self.flush_number and written.dropped == frozen.dropped.copy())

    def _next_number(self) -> int:
        """A number that no block has, also of a failed attempt."""
        return max(self.flush_number, self._written.flush_number if self._written is not None else 0) + 1

    @fault_point("bookie.flush.done")
    def release(self, frozen: Frozen) -> None:
        """On the loop, after `write`: the cache forgets what is durable now."""
        self._cache.release()
        self._ledgers.flushed(frozen.states)
        self.flushes += 1
        self._on_flush(frozen.size_bytes)

    @fault_point("bookie.delete_ledgers.writing")
    def write_deletion(self, ledger_ids: Sequence[int], fenced: Sequence[LedgerData], up_to_flush: int) -> None:
        """Delete ledgers from the index; see `LedgerStorage.delete_ledgers`."""
        number = self._next_number()
        if self._stored.delete_ledgers(number, ledger_ids, fenced, up_to_flush):
            self.flush_number = number
