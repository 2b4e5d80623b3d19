"""The write cache: entries not yet flushed, by ledger. No I/O; only the event loop changes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.ledger_data import LedgerData

ENTRY_OVERHEAD_BYTES = 160
"""Memory that an entry in the cache takes beside its bytes: object headers, its id, its place in a dict."""
LEDGER_OVERHEAD_BYTES = 400
DROPPED_AT_ONCE = 4096
TABLES_AT_ONCE = 64


@dataclass(slots=True)
class Frozen:
    """The half of the write cache that one flush writes. It no longer changes, except for `dropped`."""

    tables: dict[int, dict[int, Buffer]]
    size_bytes: int
    states: list[LedgerData] = field(default_factory=list)
    dropped: dict[int, LedgerData | None] = field(default_factory=dict)
    """Ledgers deleted since the freeze, with their tombstones. The loop adds to it; an attempt to flush uses the state at its beginning."""

    def drop(self, step_aside: Callable[[], None]) -> None:
        """Free the entries in portions. On a worker, after `release`: freeing them at once would block the loop."""
        for number, table in enumerate(self.tables.values(), 1):
            if not number % TABLES_AT_ONCE:
                step_aside()
            entry_ids = list(table)
            for start in range(0, len(entry_ids), DROPPED_AT_ONCE):
                deque(map(table.pop, entry_ids[start : start + DROPPED_AT_ONCE]), maxlen=0)


class WriteCache:
    """Entries by ledger and id, in two halves: the active one takes writes, the frozen one is being flushed."""

    def __init__(self) -> None:
        self.active: dict[int, dict[int, Buffer]] = {}
        self.active_bytes = 0
        self.frozen: Frozen | None = None

    @property
    def size_bytes(self) -> int:
        return self.active_bytes + (self.frozen.size_bytes if self.frozen is not None else 0)

    def put(self, ledger_id: int, entry_ids: Iterable[int], entries: Sequence[Buffer], size_bytes: int) -> None:
        """Add entries, replacing those with the same id. `size_bytes`: memory that the entries hold."""
        table = self.active.get(ledger_id)
        if table is None:
            table = self.active[ledger_id] = {}
            self.active_bytes += LEDGER_OVERHEAD_BYTES
        table.update(zip(entry_ids, entries, strict=True))
        self.active_bytes += size_bytes + ENTRY_OVERHEAD_BYTES * len(entries)

    def put_one(self, ledger_id: int, entry_id: int, entry: bytes) -> None:
        """As `put` for one entry."""
        table = self.active.get(ledger_id)
        if table is None:
            table = self.active[ledger_id] = {}
            self.active_bytes += LEDGER_OVERHEAD_BYTES
        table[entry_id] = entry
        self.active_bytes += len(entry) + ENTRY_OVERHEAD_BYTES

    def get(self, ledger_id: int, entry_id: int) -> bytes | None:
        """The newest copy, or None. May be called from the reader's thread: the order active, frozen, then index misses nothing."""
        table = self.active.get(ledger_id)
        entry = table.get(entry_id) if table is not None else None
        if entry is not None:
            return bytes(entry)
        frozen = self.frozen
        if frozen is None:
            return None
        table = frozen.tables.get(ledger_id)
        entry = table.get(entry_id) if table is not None else None
        return bytes(entry) if entry is not None else None

    def ids(self, ledger_id: int) -> set[int]:
        """Ids of all entries of a ledger in both halves."""
        found = set(self.active.get(ledger_id, ()))
        # Also called on the reader's thread; the loop may release the frozen half meanwhile.
        frozen = self.frozen
        if frozen is not None:
            found.update(frozen.tables.get(ledger_id, ()))
        return found

    def lacks(self, ledger_id: int, entry_ids: range) -> bool:
        """Whether the cache holds none of these entries. May be called from the reader's thread, as `get`."""
        table = self.active.get(ledger_id)
        if table is not None and not table.keys().isdisjoint(entry_ids):
            return False
        frozen = self.frozen
        table = frozen.tables.get(ledger_id) if frozen is not None else None
        return table is None or table.keys().isdisjoint(entry_ids)

    def holds(self, ledger_id: int) -> bool:
        return ledger_id in self.active or (self.frozen is not None and ledger_id in self.frozen.tables)

    def freeze(self, states: list[LedgerData]) -> Frozen:
        """Freeze the active half for a flush. Only while no other half is frozen."""
        assert self.frozen is None, "one flush at a time"
        self.frozen = Frozen(self.active, self.active_bytes, states)
        self.active = {}
        self.active_bytes = 0
        return self.frozen

    def release(self) -> None:
        """Discard the frozen half, which is durable in logs and index."""
        self.frozen = None

    def drop_ledger(self, ledger_id: int, kept: LedgerData | None) -> None:
        """Discard a deleted ledger's unflushed entries. Their bytes stay accounted until the next flush.

        Args:
            kept: the tombstone that a running flush must write instead, since the flush may move the journal's mark past the fence.
        """
        self.active.pop(ledger_id, None)
        if self.frozen is not None:
            self.frozen.dropped[ledger_id] = kept
