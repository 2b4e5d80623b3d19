"""Recovery of a ledger that its writer left open: fence it, find its end, copy the tail, close it.

The shell executes the machine's commands and steps the machine with their results. The machine starts when the metadata says
IN_RECOVERY, and ends with `CloseLedger` or with a reason in `failure`.

1. `FenceAndReadLac` goes to all bookies of the last ensemble; the answers count only when they cover every write quorum.
2. Entries behind the confirmed prefix are read, many at a time; each read fences its bookie. A good copy from any replica proves
   that the entry exists; write quorum - ack quorum + 1 explicit negatives prove that it does not; any other answer proves nothing.
   Bookies that have not answered the fence are read last. When a bookie is slow to answer a read, the next replica is read as well.
   Entries read ahead are processed in order, and discarded behind the first entry that does not exist.
3. Each entry found is written again, past the fence, until an ack quorum has it. Bookies that fail are replaced in memory only:
   the new segments reach the metadata together with CLOSED, since a second recoverer may be using the present ones.
   The headers of the copies repeat the last-add-confirmed of step 1 and do not advance with the copying. An entry that is confirmed
   only in ensembles unknown to the metadata would mislead the next recoverer if this one died.
4. At the first absent entry, the ledger is closed at the entry before it.

Source: BookKeeper `LedgerRecoveryOp`, `ReadOnlyLedgerHandle`.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.ledger.domain_trackers import DomainWriteTracker
from triplicate.ledger.last_confirmed import LastConfirmed
from triplicate.ledger.ledger_metadata import LedgerMetadata, LedgerState
from triplicate.ledger.placement.ack_domains import AckDomains
from triplicate.ledger.read_plan import ReadPlan
from triplicate.ledger.schedule import absent_answers_needed, is_endangered, write_set
from triplicate.ledger.write_tracker import WriteTracker

WINDOW_BYTES = 1 << 24
READ_BEYOND_ENTRIES = 16
"""How many entries are read behind the last one that any bookie named; usually none exists."""

# Commands: what the shell must do.


@dataclass(frozen=True, slots=True)
class FenceAndReadLac:
    """Read the last entry of the bookie at a position of the last ensemble, with the fence flag."""

    position: int
    bookie_id: str


@dataclass(frozen=True, slots=True)
class RecoveryRead:
    """Read one entry from one bookie, with the fence flag."""

    entry_id: int
    bookie_id: str


@dataclass(frozen=True, slots=True)
class RecoveryAdd:
    """Write an entry to one bookie with the recovery flag, which passes the fence."""

    entry_id: int
    bookie_id: str
    last_add_confirmed: int
    length: int
    payload: bytes

    def is_copy_of(self, other: RecoveryAdd) -> bool:
        """Whether both write the same bytes, to the same or different bookies."""
        if self.payload is not other.payload or self.entry_id != other.entry_id:
            return False
        return self.last_add_confirmed == other.last_add_confirmed and self.length == other.length


@dataclass(frozen=True, slots=True)
class ReplaceBookies:
    """Choose other bookies for the failed positions of this ensemble; report `EnsembleReplaced` or `NoReplacement`."""

    ensemble: tuple[str, ...]
    failed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CloseLedger:
    """Write this metadata if the ledger is still in recovery; if it is CLOSED by then, adopt its end."""

    metadata: LedgerMetadata
    length_is_known: bool = True
    """Whether the length is that of the last entry, and not a substitute."""


Command = FenceAndReadLac | RecoveryRead | RecoveryAdd | ReplaceBookies | CloseLedger

# Events: the results of the commands.


@dataclass(frozen=True, slots=True)
class LacAnswered:
    """A bookie is fenced, and sent its last entry with a right digest."""

    position: int
    entry_id: int
    last_add_confirmed: int
    length: int


@dataclass(frozen=True, slots=True)
class LacAbsent:
    """A bookie is fenced and has no entry of the ledger."""

    position: int


@dataclass(frozen=True, slots=True)
class LacDamaged:
    """A bookie is fenced, but sent an entry with a wrong digest."""

    position: int


@dataclass(frozen=True, slots=True)
class LacFailed:
    """A bookie gave no usable answer; whether it is fenced is unknown."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class EntryFound:
    """A good copy. `length` is the ledger's length up to and including this entry."""

    entry_id: int
    bookie_id: str
    length: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class EntryAbsent:
    """A bookie denied the entry or the ledger explicitly."""

    entry_id: int
    bookie_id: str


@dataclass(frozen=True, slots=True)
class EntryFailed:
    """A bookie failed to deliver: an error, a timeout, a damaged copy."""

    entry_id: int
    bookie_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AddsAcknowledged:
    """A bookie stored these entries durably."""

    bookie_id: str
    entry_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddFailed:
    """A bookie did not store what it was sent."""

    bookie_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class EnsembleReplaced:
    """A result of `ReplaceBookies`: the same ensemble with other bookies at all or some of the failed positions."""

    ensemble: tuple[str, ...]
    domains: AckDomains | None = None
    """Of the ensemble; None if copies may be stored in any."""


@dataclass(frozen=True, slots=True)
class NoReplacement:
    """A result of `ReplaceBookies`: no other bookie is writable. Recovery continues as long as ack quorums remain."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """`Recovery.hedge_at` has passed."""


Event = (
    LacAnswered
    | LacAbsent
    | LacDamaged
    | LacFailed
    | EntryFound
    | EntryAbsent
    | EntryFailed
    | AddsAcknowledged
    | AddFailed
    | EnsembleReplaced
    | NoReplacement
    | TimePassed
)


@dataclass(frozen=True, slots=True)
class _ReadEntry:
    length: int
    payload: bytes


@dataclass(slots=True)
class _RecoveredEntry:
    """An entry that is being read, or was read and is not written again yet."""

    plan: ReadPlan
    requested_at: float
    """When a replica was last read."""
    read: _ReadEntry | None = None

    @property
    def hedgeable(self) -> bool:
        return self.read is None and not self.plan.is_absent and self.plan.has_untried


@dataclass(slots=True)
class _ReadAhead:
    """How far entries may be read ahead, and how far they have been."""

    window: int
    """Entries beyond the confirmed prefix."""
    window_bytes: int
    """Payload bytes of these entries, estimated by `entry_bytes`."""
    entry_bytes: int = 1
    """Estimated payload bytes of an entry."""
    greatest_entry_id: int = -1
    """The greatest entry id that any bookie has named or delivered; -1 without one."""
    following: int = 0
    """The next entry to read."""

    def limit(self, last_add_confirmed: int) -> int:
        """The last entry that may be read now."""
        window = min(self.window, max(1, self.window_bytes // self.entry_bytes))
        return min(last_add_confirmed + window, self.greatest_entry_id + READ_BEYOND_ENTRIES)


class Recovery:
    """One attempt to recover a ledger.

    Args:
        metadata: the present metadata, in state IN_RECOVERY.
        read_window: how many entries beyond the confirmed prefix may be read or written at a time.
        now: seconds of a monotonic clock.
        window_bytes: how many payload bytes these may have, estimated from the ledger's average entry or the largest one read.
        hedge_s: seconds before the next replica is read as well as one that has not answered.
        domains: of the last ensemble. Copies are stored in enough of them, or in as many as are left. None: in any.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        read_window: int,
        now: float,
        window_bytes: int = WINDOW_BYTES,
        hedge_s: float = float("inf"),
        domains: AckDomains | None = None,
    ) -> None:
        assert metadata.state == LedgerState.IN_RECOVERY, "the metadata must say IN_RECOVERY before bookies are fenced"
        assert read_window >= 1
        assert window_bytes >= 1
        self.metadata = metadata
        self.failure: str | None = None
        self._snapshot = metadata
        self._ahead = _ReadAhead(read_window, window_bytes)
        self._started_at = now
        self._commands: list[Command] = []
        self._answers = LastConfirmed(metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._tracker: WriteTracker | None = None
        self._domains = domains
        self._now = now
        self._hedge_s = hedge_s
        self._entries: dict[int, _RecoveredEntry] = {}
        self._unconfirmed: dict[int, _ReadEntry] = {}
        self._failed: dict[str, str] = {}
        self._unreplaced: dict[str, None] = {}
        self._end: int | None = None
        self._length: int | None = None
        self._length_is_known = True
        self._closing = False
        for position, bookie_id in enumerate(metadata.last_segment.ensemble):
            self._commands.append(FenceAndReadLac(position, bookie_id))

    @property
    def is_finished(self) -> bool:
        """Whether further events have no effect."""
        return self._closing or self.failure is not None

    @property
    def is_fenced(self) -> bool:
        """Whether enough bookies are fenced and the last-add-confirmed is known."""
        return self._tracker is not None

    def waits_for(self) -> dict[str, list[str]]:
        """Bookies that owe an answer, by the request: ``last entry``, ``entry 7``, ``storing copies``."""
        if self._tracker is None:
            awaited = {"last entry": self._answers.waiting}
        else:
            awaited = {f"entry {entry_id}": entry.plan.awaited for entry_id, entry in self._entries.items() if entry.read is None}
            awaited["storing copies"] = self._bookies_without_copies(self._tracker) if self._unconfirmed else []
        return {request: bookies for request, bookies in awaited.items() if bookies}

    def _bookies_without_copies(self, tracker: WriteTracker) -> list[str]:
        return [name for name in tracker.ensemble if name not in self._failed and tracker.acked_through(name) < tracker.last_add_pushed]

    @property
    def hedge_at(self) -> float:
        """When to step with `TimePassed`, in seconds of the clock; infinite while no other replica could answer a pending read."""
        return min([entry.requested_at + self._hedge_s for entry in self._hedgeable()], default=float("inf"))

    def _hedgeable(self) -> list[_RecoveredEntry]:
        return [] if self.is_finished else [entry for entry in self._entries.values() if entry.hedgeable]

    def silent_bookies(self) -> list[str]:
        """Bookies that have not answered the fence so far."""
        return self._answers.waiting

    @property
    def failed_bookies(self) -> list[str]:
        """Bookies that failed to store a copy in this attempt; they are sent no more copies."""
        return list(self._failed)

    def bookies_without_copies(self) -> list[str]:
        """Bookies that have not stored every copy that they were to hold, and that the metadata may name; none if nothing was copied.

        A failed bookie may be named by a segment that ended when it was replaced.
        """
        tracker = self._tracker
        if tracker is None or tracker.last_add_pushed <= self.known_confirmed():
            return []
        return list(dict.fromkeys([*self._failed, *(tracker.ensemble[position] for position in tracker.positions_without_copies())]))

    def acked_through(self, bookie_id: str) -> int:
        """The bookie has acknowledged every copy that it was sent up to this entry id; see `WriteTracker.acked_through`."""
        return -1 if self._tracker is None else self._tracker.acked_through(bookie_id)

    @property
    def has_commands(self) -> bool:
        """Whether `pop_commands` would return any command."""
        return bool(self._commands)

    def pop_commands(self) -> list[Command]:
        """The commands to execute now, in order; each is returned once."""
        commands, self._commands = self._commands, []
        return commands

    def step(self, event: Event, now: float) -> None:
        """Process one event. Events that are late, repeated, or not requested any more are ignored.

        Acknowledgements of copies count to the end, since the recovery ends when an ack quorum has them.
        """
        if self.is_finished:
            if isinstance(event, AddsAcknowledged) and self._tracker is not None:
                self._tracker.acknowledge(event.bookie_id, event.entry_ids)  # For `bookies_without_copies`.
            return
        self._now = now
        match event:
            case LacAnswered() | LacAbsent() | LacDamaged() | LacFailed():
                self._handle_lac(event, now)
            case EntryFound() | EntryAbsent() | EntryFailed():
                self._handle_entry(event)
            case AddsAcknowledged() | AddFailed() | EnsembleReplaced() | NoReplacement():
                self._handle_add(event)
            case TimePassed():
                for entry in self._hedgeable():
                    if entry.requested_at + self._hedge_s <= now:
                        self._read_next_replica(entry)
        self._advance()

    # The first phase: fence and learn.

    def _handle_lac(self, event: LacAnswered | LacAbsent | LacDamaged | LacFailed, now: float) -> None:
        if self._tracker is not None:
            return
        answers = self._answers
        match event:
            case LacAnswered():
                answers.answered(event.position, event.entry_id, event.last_add_confirmed, event.length)
            case LacAbsent():
                answers.nothing_there(event.position)
            case LacDamaged():
                answers.damaged(event.position)
            case LacFailed():
                answers.failed(event.position, event.reason)
        if answers.is_covered:
            start = self.known_confirmed()
            ensemble = self._snapshot.last_segment.ensemble
            sizes = (ensemble, self._snapshot.write_quorum, self._snapshot.ack_quorum)
            self._tracker = WriteTracker(*sizes, start + 1)
            if self._domains is not None:
                self._tracker = DomainWriteTracker(*sizes, self._domains.limited((), self._snapshot.write_quorum), start + 1)
            self._ahead.following = start + 1
            self._ahead.greatest_entry_id = max(start, answers.last_entry_id)
            self._ahead.entry_bytes = max(1, answers.average_bytes)
        elif answers.is_exhausted:
            self.failure = (
                f"the bookies that answered within {now - self._started_at:.1f} s could hide an acknowledged entry; "
                f"unknown are {answers.missing()}"
            )

    def known_confirmed(self) -> int:
        """The entry before the first to read: the last-add-confirmed of the answers, but never before the last segment.

        A segment is only ever started behind the confirmed prefix, so all before it is confirmed, even where an empty new
        ensemble knows nothing.
        """
        return max(self._answers.last_add_confirmed, self._snapshot.last_segment.first_entry_id - 1)

    # The second phase: read forward.

    def _handle_entry(self, event: EntryFound | EntryAbsent | EntryFailed) -> None:
        entry = self._entries.get(event.entry_id)
        if entry is None or entry.read is not None:
            return
        match event:
            case EntryFound():
                entry.read = _ReadEntry(event.length, event.payload)
                self._ahead.entry_bytes = max(self._ahead.entry_bytes, len(event.payload))
                self._ahead.greatest_entry_id = max(self._ahead.greatest_entry_id, event.entry_id)
                return
            case EntryAbsent():
                entry.plan.absent(event.bookie_id)
            case EntryFailed():
                entry.plan.failed(event.bookie_id, event.reason)
        if not entry.plan.is_absent:
            self._read_next_replica(entry)

    def _read_next_replica(self, entry: _RecoveredEntry) -> None:
        bookie_id = entry.plan.next_replica()
        if bookie_id is not None:
            entry.requested_at = self._now
            self._commands.append(RecoveryRead(entry.plan.entry_id, bookie_id))

    def _plan(self, entry_id: int, absent_needed: int) -> None:
        ensemble = self._snapshot.ensemble_of(entry_id)
        positions = write_set(entry_id, self._snapshot.ensemble_size, self._snapshot.write_quorum)
        # Without hedging, replicas are read in the order of the write set, as for every other read.
        silent = self._answers.waiting if self._hedge_s < float("inf") else []
        replicas = sorted((ensemble[position] for position in positions), key=silent.__contains__)  # Stable.
        self._entries[entry_id] = _RecoveredEntry(ReadPlan(entry_id, replicas, absent_needed), self._now)
        self._read_next_replica(self._entries[entry_id])

    # The third phase: write again.

    def _handle_add(self, event: AddsAcknowledged | AddFailed | EnsembleReplaced | NoReplacement) -> None:
        tracker = self._tracker
        assert tracker is not None, "nothing was written yet"
        match event:
            case AddsAcknowledged():
                tracker.acknowledge(event.bookie_id, event.entry_ids)
            case AddFailed():
                if tracker.position_of(event.bookie_id) is None or event.bookie_id in self._unreplaced:
                    return
                self._failed[event.bookie_id] = event.reason
                if not tracker.changing:
                    tracker.begin_change()
                    self._request_replacement(tracker)
            case EnsembleReplaced():
                assert tracker.last_add_confirmed + 1 >= self._snapshot.last_segment.first_entry_id, "no segment before the last"
                changed = tracker.replace(event.ensemble, event.domains)
                self._limit_domains(tracker)
                self.metadata = self.metadata.with_ensemble(tracker.last_add_confirmed + 1, event.ensemble)
                for position in changed:
                    for entry_id in tracker.pending_of(position):
                        self._send(tracker.ensemble[position], entry_id)
                if not self._request_replacement(tracker):
                    tracker.end_change()
            case NoReplacement():
                self._continue_without(tracker, event.reason)

    def _continue_without(self, tracker: WriteTracker, reason: str) -> None:
        """Leave failed bookies at their positions without copies, if every entry still finds its ack quorum."""
        self._unreplaced.update((bookie_id, None) for bookie_id in tracker.ensemble if bookie_id in self._failed)
        unreplaced = [position for position, bookie_id in enumerate(tracker.ensemble) if bookie_id in self._unreplaced]
        if is_endangered(unreplaced, self._snapshot.ensemble_size, self._snapshot.write_quorum, self._snapshot.ack_quorum):
            failures = "; ".join(f"{bookie_id}: {why}" for bookie_id, why in self._failed.items())
            self.failure = f"too few bookies store what is recovered ({failures}), and {reason}"
        else:
            self._limit_domains(tracker)
            tracker.end_change()

    def _limit_domains(self, tracker: WriteTracker) -> None:
        if isinstance(tracker, DomainWriteTracker):
            tracker.limit_domains([position for position, bookie_id in enumerate(tracker.ensemble) if bookie_id in self._unreplaced])

    def _request_replacement(self, tracker: WriteTracker) -> bool:
        hopeless = self._unreplaced
        failed = tuple(i for i, bookie_id in enumerate(tracker.ensemble) if bookie_id in self._failed and bookie_id not in hopeless)
        if failed:
            self._commands.append(ReplaceBookies(tracker.ensemble, failed))
        return bool(failed)

    def _write(self, tracker: WriteTracker, entry: _ReadEntry) -> None:
        entry_id = tracker.push()
        self._unconfirmed[entry_id] = entry
        for position in write_set(entry_id, self._snapshot.ensemble_size, self._snapshot.write_quorum):
            self._send(tracker.ensemble[position], entry_id)

    def _send(self, bookie_id: str, entry_id: int) -> None:
        if bookie_id not in self._failed:
            entry = self._unconfirmed[entry_id]
            self._commands.append(RecoveryAdd(entry_id, bookie_id, self.known_confirmed(), entry.length, entry.payload))

    # Decisions from the collected results.

    def _advance(self) -> None:
        tracker = self._tracker
        if tracker is None or self.is_finished:
            return
        before = tracker.last_add_confirmed
        for entry_id in range(before + 1, tracker.advance() + 1):
            self._length = self._unconfirmed.pop(entry_id).length
        self._write_entries_read(tracker)
        if self._end is None:
            ahead = self._ahead
            while self.failure is None and ahead.following <= ahead.limit(tracker.last_add_confirmed):
                self._plan(ahead.following, absent_answers_needed(self._snapshot.write_quorum, self._snapshot.ack_quorum))
                ahead.following += 1
        elif tracker.last_add_confirmed == self._end - 1 and not tracker.changing:
            self._close(tracker.last_add_confirmed)

    def _write_entries_read(self, tracker: WriteTracker) -> None:
        """Process entries strictly in order, so that no entry behind the first absent one is ever copied."""
        while self._end is None and self.failure is None:
            entry_id = tracker.last_add_pushed + 1
            entry = self._entries.get(entry_id)
            if entry is None:
                return
            if entry.read is not None:
                del self._entries[entry_id]
                self._write(tracker, entry.read)
            elif entry.plan.is_absent:
                self._end = entry_id
                self._entries.clear()
            elif entry.plan.is_exhausted:
                self.failure = f"whether entry {entry_id} exists could not be decided: {entry.plan.report()}"
            else:
                return

    def _close(self, last_entry_id: int) -> None:
        length = self._known_length(last_entry_id)
        if length is not None:
            self._closing = True
            self._commands.append(CloseLedger(self.metadata.closed(last_entry_id, length), self._length_is_known))

    def _known_length(self, last_entry_id: int) -> int | None:
        """The length to close with; None while the last entry is being read to learn it.

        Where every copy of the last entry is out of reach, the greatest length that a bookie reported stands in, as in Apache's
        client: the length is a courtesy, and a ledger must be closable without it.
        """
        if last_entry_id < 0:
            return 0
        if self._length is None:
            self._length = self._answers.length_at(last_entry_id)
        if self._length is None:
            entry = self._entries.get(last_entry_id)
            if entry is None:
                self._plan(last_entry_id, self._snapshot.write_quorum)
            elif entry.read is not None:
                self._length = entry.read.length
            elif entry.plan.is_absent or entry.plan.is_exhausted:
                self._length, self._length_is_known = self._answers.longest(), False
        return self._length
