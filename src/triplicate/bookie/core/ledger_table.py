"""What the loop keeps in memory: the state of ledgers, and the entries not yet flushed. No I/O; only the loop changes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.ledger import DigestVerifier

ENTRY_OVERHEAD_BYTES = 160
"""Memory that an entry in the cache takes beside its bytes: object headers, its id, its place in a dict."""
LEDGER_OVERHEAD_BYTES = 400
DROPPED_AT_ONCE = 4096
TABLES_AT_ONCE = 64
BUSY_TIMES = 2
"""Where ledgers are busy, which those are whose state no flush has written, memory takes so many times as many as are kept idle."""
LOOK_AGAIN = 100
"""One in so many refusals looks whether some are idle by now."""


class Verification(Enum):
    """How far a ledger's digest is known."""

    UNKNOWN = 0
    ASKED = 1
    """Metadata is being read."""
    KNOWN = 2
    IMPOSSIBLE = 3
    """There is nothing to verify with: dummy digest, or metadata that cannot be read."""


@dataclass(slots=True, eq=False)
class LedgerHandle:
    """One ledger's state while it is in memory."""

    ledger_id: int
    master_key: bytes | None = None
    """None: this bookie has never heard of the ledger."""
    fenced: bool = False
    fence_durable: bool = False
    """The fence has been synced, in the journal or in an entry log."""
    explicit_lac: bytes | None = None
    """The greatest explicit record that was accepted: what the journal and the entry logs get."""
    durable_explicit_lac: bytes | None = None
    """The greatest explicit record that has been synced: what readers get. A crash cannot take it back."""
    last_entry_id: int = -1
    """The greatest id stored here; -1: no entry."""
    max_lac: int = -1
    """The greatest last-add-confirmed known here: of the last stored entry, of the durable explicit record, of entries since."""
    lac_unreadable: bool = False
    """The last stored entry is damaged, so more may be confirmed than `max_lac` says."""
    wake: Callable[[bool], None] | None = None
    """Set while long polls wait for the ledger; called with True when the last-add-confirmed advances, False when they must look again."""
    limbo: bool = False
    """Entries and a fence may have been lost with a disk: what is missing is unknown, and only recoveries may add."""
    dirty: bool = False
    """The state has changed since the last flush took it."""
    verification: Verification = Verification.UNKNOWN
    verifier: DigestVerifier | None = None
    tombstone: LedgerData | None = None
    """The ledger was fenced and then deleted: it does not exist, and nobody may bring it back."""

    @property
    def exists(self) -> bool:
        return self.master_key is not None

    def state(self) -> LedgerData:
        """For the journal and the entry logs. Only for ledgers that exist."""
        assert self.master_key is not None
        return LedgerData(self.ledger_id, self.master_key, self.fenced, self.explicit_lac, self.limbo)

    def learn_lac(self, last_add_confirmed: int) -> None:
        """Somebody said that entries up to this one are confirmed."""
        if last_add_confirmed > self.max_lac:
            self.max_lac = last_add_confirmed
            if self.wake is not None:
                self.wake(True)

    def accept_explicit_lac(self, record: bytes) -> None:
        """Keep an explicit record for the journal. One that says less than the record before it changes nothing."""
        self.explicit_lac = _greater(self.explicit_lac, record)

    def publish_explicit_lac(self, record: bytes) -> None:
        """An explicit record is durable, so readers may rely on it. Has no effect on a ledger that was deleted meanwhile."""
        if self.exists:
            self.durable_explicit_lac = _greater(self.durable_explicit_lac, record)
            self.learn_lac(lac_of_record(record))

    def forget(self) -> None:
        """The ledger was deleted: whoever still has the handle finds it empty."""
        self.master_key = self.explicit_lac = self.durable_explicit_lac = None
        self.last_entry_id = self.max_lac = -1
        if self.wake is not None:
            self.wake(False)

    def merge(self, state: LedgerData) -> None:
        """Add what a stored record says; fences only join, and an explicit last-add-confirmed only grows."""
        self.master_key = state.master_key
        self.fenced = self.fenced or state.fenced
        self.limbo = self.limbo or state.limbo
        self.dirty = True
        if state.explicit_lac is not None:
            self.accept_explicit_lac(state.explicit_lac)
            self.publish_explicit_lac(state.explicit_lac)


def _greater(known: bytes | None, record: bytes) -> bytes:
    """Of two explicit records the one that says more; the newer one where they say the same."""
    return known if known is not None and lac_of_record(known) > lac_of_record(record) else record


def lac_of_entry(entry: Buffer) -> int:
    """What an entry's header says is confirmed, as far as an unverified header is to be believed.

    A writer sends an entry before that is confirmed itself. More than that is damage, or a copy that was made of a confirmed entry, of
    whose ledger there is better news: -1.
    """
    entry_id = int.from_bytes(entry[8:16], "big", signed=True)
    last_add_confirmed = int.from_bytes(entry[16:24], "big", signed=True)
    return last_add_confirmed if last_add_confirmed < entry_id else -1


def lac_of_record(record: bytes) -> int:
    """What a signed last-add-confirmed record says: ledger id, then the number."""
    return int.from_bytes(record[8:16], "big", signed=True)


@dataclass(slots=True)
class Frozen:
    """What one flush writes. Nobody changes it any more."""

    tables: dict[int, dict[int, Buffer]]
    size_bytes: int
    states: list[LedgerData] = field(default_factory=list)
    dropped: dict[int, LedgerData | None] = field(default_factory=dict)
    """Ledgers deleted since, with what is kept of them: the loop adds to it, a try to write the flush goes by what it finds at first."""

    def drop(self, step_aside: Callable[[], None]) -> None:
        """Free the entries, some at a time. On a worker, after the release: all at once, it would hold up the loop for long."""
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
        """Add entries; one that is there already is replaced. `size_bytes`: what all of them keep in memory."""
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
        # The reader's thread asks too, and the loop may release the frozen half meanwhile.
        frozen = self.frozen
        if frozen is not None:
            found.update(frozen.tables.get(ledger_id, ()))
        return found

    def lacks(self, ledger_id: int, entry_ids: range) -> bool:
        """Whether none of these entries is here. May be called from the reader's thread, as `get`."""
        table = self.active.get(ledger_id)
        if table is not None and not table.keys().isdisjoint(entry_ids):
            return False
        frozen = self.frozen
        table = frozen.tables.get(ledger_id) if frozen is not None else None
        return table is None or table.keys().isdisjoint(entry_ids)

    def holds(self, ledger_id: int) -> bool:
        return ledger_id in self.active or (self.frozen is not None and ledger_id in self.frozen.tables)

    def freeze(self, states: list[LedgerData]) -> Frozen:
        """Hand the active half to a flush. Only when nothing is frozen."""
        assert self.frozen is None, "one flush at a time"
        self.frozen = Frozen(self.active, self.active_bytes, states)
        self.active = {}
        self.active_bytes = 0
        return self.frozen

    def release(self) -> None:
        """The frozen half is durable in logs and index."""
        self.frozen = None

    def drop_ledger(self, ledger_id: int, kept: LedgerData | None) -> None:
        """Forget a deleted ledger's unflushed entries. Their bytes stay accounted until the next flush.

        Args:
            kept: what a flush on its way must write instead, since it may move the journal's mark behind the fence.
        """
        self.active.pop(ledger_id, None)
        if self.frozen is not None:
            self.frozen.dropped[ledger_id] = kept


class LedgerTable:
    """Handles by ledger id, bounded: idle ones are dropped and loaded from the index again when needed."""

    def __init__(self, cache: WriteCache, limit: int) -> None:
        self._cache = cache
        self._limit = limit
        self._shrink_beyond = limit
        """Above the limit where busy ones fill the table: looking at all of them for every ledger that is loaded would be too much."""
        self._handles: dict[int, LedgerHandle] = {}
        self._dirty: dict[int, LedgerHandle] = {}
        self._refused = 0
        self.limbo_is_over = False
        """No ledger is in limbo any more, whatever was found out about it before."""
        self.get = self._handles.get
        """``get(ledger_id)``: the handle, or None when it is not in memory (which says nothing about the ledger)."""

    def __len__(self) -> int:
        return len(self._handles)

    def add(self, handle: LedgerHandle) -> LedgerHandle:
        """Keep a handle just loaded; when another was there first, that one is returned and counts."""
        known = self._handles.setdefault(handle.ledger_id, handle)
        if known is handle and handle.dirty:
            self._dirty[handle.ledger_id] = handle
        if len(self._handles) > self._shrink_beyond:
            self._shrink(handle.ledger_id)
        return known

    def has_room(self) -> bool:
        """Whether another ledger may be loaded. None may where no flush succeeds and all are busy, or memory would have no bound."""
        if len(self._handles) >= BUSY_TIMES * self._limit:
            if self._refused % LOOK_AGAIN == 0:
                self._shrink(-1)
            self._refused += 1
        return len(self._handles) < BUSY_TIMES * self._limit

    @property
    def crowded(self) -> bool:
        """So many are busy that a flush should not wait for its time."""
        return max(len(self._dirty), len(self._cache.active)) >= max(1, self._limit // 2)

    def touch_state(self, handle: LedgerHandle) -> None:
        """The state has changed: the next flush writes it."""
        handle.dirty = True
        self._dirty[handle.ledger_id] = handle

    @property
    def any_dirty(self) -> bool:
        return bool(self._dirty)

    def pop_dirty(self) -> list[LedgerData]:
        """The states that changed since the last call."""
        states = []
        for handle in self._dirty.values():
            handle.dirty = False
            states.append(handle.state() if handle.tombstone is None else handle.tombstone)
        self._dirty = {}
        return states

    def flushed(self, states: Iterable[LedgerData]) -> None:
        """These states are durable in logs and index."""
        self._shrink_beyond = self._limit
        self._refused = 0
        for state in states:
            handle = self._handles.get(state.ledger_id)
            if handle is not None and state.fenced and state.deleted is (handle.tombstone is not None):
                handle.fence_durable = True

    def forget(self, ledger_id: int) -> LedgerData | None:
        """A ledger is being deleted. One that was fenced stays so, or its old writer could bring it back.

        Returns:
            what is to be kept of it for good, where memory knows that it was fenced; `deletion_durable` says when it is.
        """
        handle = self._handles.pop(ledger_id, None)
        self._dirty.pop(ledger_id, None)
        if handle is None:
            return None
        tombstone = handle.tombstone
        if tombstone is None and handle.exists and handle.fenced:
            tombstone = handle.state().tombstone()
        handle.forget()
        if tombstone is not None:
            # Should the deletion not reach the disk, the next flush must, before it moves the journal's mark behind the fence.
            buried = self._handles[ledger_id] = LedgerHandle(ledger_id, fenced=True, tombstone=tombstone)
            self.touch_state(buried)
        return tombstone

    def deletion_durable(self, ledger_ids: Iterable[int]) -> None:
        """The index knows that these ledgers are deleted, and which of them were fenced."""
        for ledger_id in ledger_ids:
            handle = self._handles.get(ledger_id)
            if handle is not None and handle.tombstone is not None:
                handle.fence_durable = True

    def end_limbo(self) -> None:
        """What is missing in any ledger was never here, or has been brought back."""
        self.limbo_is_over = True
        for handle in self._handles.values():
            handle.limbo = False

    def was_fenced_and_deleted(self, ledger_id: int) -> bool:
        """Only for a ledger whose handle is in memory."""
        handle = self._handles.get(ledger_id)
        return handle is not None and handle.tombstone is not None

    def ids(self) -> list[int]:
        """Ledgers in memory that exist, ascending."""
        return sorted(ledger_id for ledger_id, handle in self._handles.items() if handle.exists)

    def _shrink(self, keep: int) -> None:
        """Drop idle handles, oldest first, until a tenth of the places is free again, so that this is not done at every load."""
        wanted = len(self._handles) - self._limit + self._limit // 10
        frozen = self._cache.frozen
        frozen_states = {state.ledger_id for state in frozen.states} if frozen is not None else set()
        idle: list[int] = []
        for ledger_id, handle in self._handles.items():
            if len(idle) >= wanted:
                break
            busy = handle.dirty or ledger_id == keep or ledger_id in frozen_states or handle.fenced != handle.fence_durable
            # Whoever waits for the ledger hears of what happens to this handle only.
            if not busy and handle.wake is None and not self._cache.holds(ledger_id):
                idle.append(ledger_id)
        for ledger_id in idle:
            del self._handles[ledger_id]
        self._shrink_beyond = max(self._limit, len(self._handles) + self._limit // 10)
