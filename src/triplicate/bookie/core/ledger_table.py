"""The state of ledgers in memory. No I/O; only the event loop changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.core.write_cache import WriteCache
from triplicate.ledger import DigestVerifier

BUSY_TIMES = 2
"""Upper bound on ledgers in memory, as a multiple of `ledger_handles`. Ledgers with unflushed state may fill it."""
RETRY_SHRINK_EVERY = 100
"""Every 100th refusal searches again for idle handles."""


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
    """None: the ledger does not exist on this bookie."""
    fenced: bool = False
    fence_durable: bool = False
    """The fence has been synced, in the journal or in an entry log."""
    explicit_lac: bytes | None = None
    """The greatest explicit record accepted. The journal and the entry logs store it."""
    durable_explicit_lac: bytes | None = None
    """The greatest explicit record synced. Readers get it, since a crash cannot undo it."""
    last_entry_id: int = -1
    """The greatest entry id stored here; -1: no entry."""
    max_lac: int = -1
    """The greatest last-add-confirmed known here: of the last stored entry, of the durable explicit record, of entries since."""
    lac_unreadable: bool = False
    """The last stored entry is damaged, so more may be confirmed than `max_lac` says."""
    wake: Callable[[bool], None] | None = None
    """Set while long polls wait for the ledger. Called with True when the last-add-confirmed advances, with False when the ledger's state
    changed otherwise and the polls must be checked."""
    limbo: bool = False
    """Entries and a fence may have been lost with a disk. An entry that is missing is unknown, not absent, and only recoveries may add."""
    dirty: bool = False
    """The state has changed since the last flush."""
    verification: Verification = Verification.UNKNOWN
    verifier: DigestVerifier | None = None
    tombstone: LedgerData | None = None
    """The ledger was fenced and then deleted: it does not exist, and must not be created again."""

    @property
    def exists(self) -> bool:
        return self.master_key is not None

    def state(self) -> LedgerData:
        """For the journal and the entry logs. Only for ledgers that exist."""
        assert self.master_key is not None
        return LedgerData(self.ledger_id, self.master_key, self.fenced, self.explicit_lac, self.limbo)

    def learn_lac(self, last_add_confirmed: int) -> None:
        """Record that entries up to this one are confirmed."""
        if last_add_confirmed > self.max_lac:
            self.max_lac = last_add_confirmed
            if self.wake is not None:
                self.wake(True)

    def entries_stored(self, entry_ids: Sequence[int], entries: Sequence[Buffer], last_add_confirmed: int) -> None:
        """Record entries that are stored now.

        Args:
            last_add_confirmed: the greatest in the entries' headers; -1 if they cannot be trusted.
        """
        greatest = max(entry_ids)
        self.last_entry_id = max(self.last_entry_id, greatest)
        if last_add_confirmed >= greatest:
            # At least one header is wrong.
            last_add_confirmed = max(map(lac_of_entry, entries))
        if last_add_confirmed > self.max_lac:
            self.learn_lac(last_add_confirmed)

    def accept_explicit_lac(self, record: bytes) -> None:
        """Keep an explicit record for the journal. One with a smaller last-add-confirmed than the record before it changes nothing."""
        self.explicit_lac = _greater(self.explicit_lac, record)

    def publish_explicit_lac(self, record: bytes) -> None:
        """Show a durable explicit record to readers. Has no effect on a ledger that was deleted meanwhile."""
        if self.exists:
            self.durable_explicit_lac = _greater(self.durable_explicit_lac, record)
            self.learn_lac(lac_of_record(record))

    def forget(self) -> None:
        """The ledger was deleted: remaining users of the handle find it empty."""
        self.master_key = self.explicit_lac = self.durable_explicit_lac = None
        self.last_entry_id = self.max_lac = -1
        if self.wake is not None:
            self.wake(False)

    def merge(self, state: LedgerData) -> None:
        """Merge a stored record: fences are only added, and an explicit last-add-confirmed only grows."""
        self.master_key = state.master_key
        self.fenced = self.fenced or state.fenced
        self.limbo = self.limbo or state.limbo
        self.dirty = True
        if state.explicit_lac is not None:
            self.accept_explicit_lac(state.explicit_lac)
            self.publish_explicit_lac(state.explicit_lac)


def _greater(known: bytes | None, record: bytes) -> bytes:
    """The explicit record with the greater last-add-confirmed; of equal ones the newer."""
    return known if known is not None and lac_of_record(known) > lac_of_record(record) else record


def lac_of_entry(entry: Buffer) -> int:
    """The last-add-confirmed of an entry's unverified header.

    An entry's LAC is below its own id, since a writer sends an entry before it is confirmed. Any other value is corruption or belongs to a
    re-replicated copy; then the result is -1 (unknown).
    """
    entry_id = int.from_bytes(entry[8:16], "big", signed=True)
    last_add_confirmed = int.from_bytes(entry[16:24], "big", signed=True)
    return last_add_confirmed if last_add_confirmed < entry_id else -1


def lac_of_record(record: bytes) -> int:
    """The number in a signed last-add-confirmed record. The record begins with the ledger id."""
    return int.from_bytes(record[8:16], "big", signed=True)


class LedgerTable:
    """Handles by ledger id, bounded. Idle handles are evicted and loaded from the index again when needed."""

    def __init__(self, cache: WriteCache, limit: int) -> None:
        self._cache = cache
        self._limit = limit
        self._shrink_beyond = limit
        """Size at which eviction is tried next. It is above the limit while busy handles fill the table, so that not every load scans
        them."""
        self._handles: dict[int, LedgerHandle] = {}
        self._dirty: dict[int, LedgerHandle] = {}
        self._refused = 0
        self.limbo_is_over = False
        """No ledger is in limbo any more; answers from before do not count."""
        self.get = self._handles.get
        """``get(ledger_id)``: the handle, or None when it is not in memory. The ledger may exist all the same."""

    def __len__(self) -> int:
        return len(self._handles)

    def add(self, handle: LedgerHandle) -> LedgerHandle:
        """Keep a handle just loaded. Returns the handle that counts: one that was added meanwhile wins."""
        known = self._handles.setdefault(handle.ledger_id, handle)
        if known is handle and handle.dirty:
            self._dirty[handle.ledger_id] = handle
        if len(self._handles) > self._shrink_beyond:
            self._shrink(handle.ledger_id)
        return known

    def has_room(self) -> bool:
        """Whether another ledger may be loaded. False when all handles are busy and no flush frees them, which bounds the memory."""
        if len(self._handles) >= BUSY_TIMES * self._limit:
            if self._refused % RETRY_SHRINK_EVERY == 0:
                self._shrink(-1)
            self._refused += 1
        return len(self._handles) < BUSY_TIMES * self._limit

    @property
    def crowded(self) -> bool:
        """Whether enough handles are busy for a flush to start at once."""
        return max(len(self._dirty), len(self._cache.active)) >= max(1, self._limit // 2)

    def touch_state(self, handle: LedgerHandle) -> None:
        """The state has changed: the next flush writes it."""
        handle.dirty = True
        self._dirty[handle.ledger_id] = handle

    @property
    def any_dirty(self) -> bool:
        return bool(self._dirty)

    def pop_dirty(self) -> list[LedgerData]:
        """The states that changed since the last call, for a flush."""
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
        """Forget a ledger that is being deleted. A fenced one stays fenced, or its old writer could create it again.

        Returns:
            the tombstone that is kept for good, if memory knows that the ledger was fenced; `deletion_durable` reports when it is durable.
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
            # If the deletion does not reach the disk, the next flush writes the tombstone before it moves the journal's mark past the
            # fence.
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
        """End limbo for every ledger: an entry that is missing was never here, or has been copied back."""
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
        """Evict idle handles, oldest first, until a tenth of the places is free, so that not every load evicts."""
        wanted = len(self._handles) - self._limit + self._limit // 10
        frozen = self._cache.frozen
        frozen_states = {state.ledger_id for state in frozen.states} if frozen is not None else set()
        idle: list[int] = []
        for ledger_id, handle in self._handles.items():
            if len(idle) >= wanted:
                break
            busy = handle.dirty or ledger_id == keep or ledger_id in frozen_states or handle.fenced != handle.fence_durable
            # Long polls are woken through this handle only.
            if not busy and handle.wake is None and not self._cache.holds(ledger_id):
                idle.append(ledger_id)
        for ledger_id in idle:
            del self._handles[ledger_id]
        self._shrink_beyond = max(self._limit, len(self._handles) + self._limit // 10)
