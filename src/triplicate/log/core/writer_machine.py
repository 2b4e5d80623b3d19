"""The decisions of a log's writer: what is sent, when a segment ends, what is sent again, and what a failure ends.

The machine numbers entries and keeps them in offset order: first in the queue, then in flight, until the ledger acknowledges them.
The shell steps it with what happened and carries out the commands that follow. All entries of a ledger are acknowledged in order.

A segment ends in one of two ways:

1. A roll: the machine stops sending, waits until nothing is in flight, and emits `SwitchSegment`. The shell closes the ledger.
2. A failure of the ledger: the machine emits `SwitchSegment` at once, with its cause. The shell recovers the ledger. Recovery decides
   which entries in flight the ledger holds: those are acknowledged, and the others return to the front of the queue.

Either way the shell lists the next segment (`SegmentListed`), writes its header (`SegmentOpened`), and sending continues there. Other
records may have been listed in between, so entries in the queue are renumbered. Nothing that was acknowledged is ever renumbered.

A fenced or deleted ledger ends the writer: another writer owns the log. Every entry that is not acknowledged then fails.

An entry of a ledger becomes readable when a later entry repeats its acknowledgement. `has_unreadable` says whether the last records lack
such an entry; the shell then appends a no-op after a while.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from triplicate.errors import LedgerFenced, LogFenced, NoSuchLedger, NoSuchLog, OutcomeUnknown, UsageError
from triplicate.log.core.head import LogSegment, closed_segment
from triplicate.log.core.payload_encoder import EncodedEntry, wall_time_after

Waiter = TypeVar("Waiter")
"""The object that an appender waits for, opaque to the machine: the shell's future, or None if no appender waits."""

LOST = (LedgerFenced, NoSuchLedger, NoSuchLog)
"""Errors that mean that the log was lost: to another writer, or to its deletion."""
NEVER_BYTES = 2**62


class Phase(Enum):
    OPENING = "opening"
    """The header of the first segment is being written."""
    OPEN = "open"
    """The segment accepts entries."""
    DRAINING = "draining"
    """A roll has begun: nothing is sent, and the segment ends when nothing is in flight."""
    SWITCHING = "switching"
    """The shell closes or recovers the segment and opens the next one."""
    LEAVING = "leaving"
    """The shell closes the last segment of this writer."""
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class PendingEntry(Generic[Waiter]):
    """One entry from its encoding until its acknowledgement.

    Args:
        room_bytes: the bytes that it occupies in the window.
        has_readers: whether the entry is worth a no-op behind it; False for a no-op.
        first_offset: offset of its first record; assigned by the machine, final once it is acknowledged.
        entry_id: in its segment; -1 until it is sent.
        queued_at: seconds of the caller's monotonic clock.
    """

    encoded: EncodedEntry
    waiter: Waiter
    room_bytes: int
    has_readers: bool = True
    first_offset: int = -1
    entry_id: int = -1
    queued_at: float = 0.0

    @property
    def end_offset(self) -> int:
        """Offset after its last record."""
        return self.first_offset + self.encoded.count

    @property
    def offsets(self) -> range:
        return range(self.first_offset, self.first_offset + self.encoded.count)


# Commands: what the shell must do, in order.


@dataclass(slots=True)
class SendEntry(Generic[Waiter]):
    """Append the entry to the open ledger; answer at once with `count_sent`, `SendDeferred` or `LedgerFailed`.

    Args:
        first_index: records before it in its segment.
    """

    entry: PendingEntry[Waiter]
    first_index: int


@dataclass(frozen=True, slots=True)
class CheckRoll:
    """Ask the rolling policy; answer with `RollBegun` or `RollChecked`, or with nothing: the entries are held until `RollChecked`."""


@dataclass(slots=True)
class ResolveEntry(Generic[Waiter]):
    """The entry is durable: resolve its waiter with its offsets and release its room."""

    entry: PendingEntry[Waiter]


@dataclass(frozen=True, slots=True)
class SwitchSegment:
    """End the open segment and open the next one: `SegmentRecovered` (if it is recovered), `SegmentListed`, `SegmentOpened`.

    Args:
        cause: why the segment must be recovered; None to close it.
    """

    cause: BaseException | None


@dataclass(frozen=True, slots=True)
class ReportIdle:
    """Nothing is queued or in flight."""


@dataclass(frozen=True, slots=True)
class AbandonLedger:
    """Give up the open segment's ledger without closing it; the next take-over recovers it."""


@dataclass(frozen=True, slots=True)
class StopWriter(Generic[Waiter]):
    """The writer has failed: fail these entries and everything else that waits."""

    error: BaseException
    entries: tuple[PendingEntry[Waiter], ...]


Command = SendEntry[Waiter] | CheckRoll | ResolveEntry[Waiter] | SwitchSegment | ReportIdle | AbandonLedger | StopWriter[Waiter]

_CHECK_ROLL, _IDLE = CheckRoll(), ReportIdle()

# Events: what happened. The three events of each entry are methods of the machine: `enqueue`, `count_sent`, `acknowledge`.


@dataclass(frozen=True, slots=True)
class SendDeferred:
    """The ledger's own window is full. Sending continues with the next acknowledgement.

    Args:
        error: ends the writer if nothing is in flight, since nothing would ever make room.
    """

    error: BaseException


@dataclass(frozen=True, slots=True)
class LedgerFailed:
    """A ledger has refused or failed an append."""

    ledger_id: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class RollBegun:
    """The rolling policy ends the segment."""


@dataclass(frozen=True, slots=True)
class RollChecked:
    """The rolling policy keeps the segment for now."""


@dataclass(frozen=True, slots=True)
class SegmentRecovered:
    """Recovery has closed the segment at what it found."""

    closed: LogSegment


@dataclass(frozen=True, slots=True)
class SegmentListed:
    """The next segment is listed in the head. It begins after the records of publishers that were listed with it."""

    segment: LogSegment


@dataclass(frozen=True, slots=True)
class SegmentOpened:
    """The header of the segment is durable, so this writer was not fenced before it.

    Args:
        size_bytes: length of the header's payload.
        wall_time_us: see `WriterMachine.count_sent`.
    """

    size_bytes: int
    wall_time_us: int


@dataclass(frozen=True, slots=True)
class WriterFailed:
    """Something ended the writer."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class LogLost:
    """The log belongs to another writer, or was deleted."""

    cause: BaseException


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """The writer accepts no more records; what is pending is still sent."""


@dataclass(frozen=True, slots=True)
class LeaveBegun:
    """The last segment is being closed. Nothing may be pending."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The writer ends now.

    Args:
        has_records: records wait that are no entry yet.
    """

    has_records: bool


Event = (
    SendDeferred
    | LedgerFailed
    | RollBegun
    | RollChecked
    | SegmentRecovered
    | SegmentListed
    | SegmentOpened
    | WriterFailed
    | LogLost
    | CloseRequested
    | LeaveBegun
    | Abandoned
)


@dataclass(slots=True)
class OpenSegment:
    """The writer's progress in the open segment.

    Args:
        size_bytes, entries: sent to the ledger, with the header.
        min_time_us: wall time of the header.
        acknowledged: last entry id acknowledged.
        worth_reading: the greatest acknowledged entry id that readers wait for.
        readable: the greatest entry id that readers may read, since an entry that was sent after its acknowledgement carries it.
    """

    listed: LogSegment
    size_bytes: int = 0
    entries: int = 0
    min_time_us: int = 0
    acknowledged: int = -1
    worth_reading: int = -1
    readable: int = -1


class WriterMachine(Generic[Waiter]):
    """The state of one writer of a log. Drive it with `step` and the events of entries, and carry out `commands` after each.

    Args:
        log, owner, epoch: for messages.
        segment: the first segment, listed and empty.
        wall_time_us: wall time of the log's last entry.
    """

    def __init__(self, log: str, owner: str, epoch: int, segment: LogSegment, wall_time_us: int) -> None:
        self.phase = Phase.OPENING
        self.segment = OpenSegment(segment)
        self.failure: BaseException | None = None
        """Why the writer ended; None while it works, and after an end without failure."""
        self.is_closing = False
        self.next_offset = segment.first_offset
        """Offset of the first record of the next entry."""
        self.acknowledged_offset = segment.first_offset
        """Offset after the last acknowledged record."""
        self.wall_time_us = wall_time_us
        """Wall time of the last entry sent."""
        self.rolls = 0
        """Segments opened after the first."""
        self.repairs = 0
        """Segments that had to be recovered."""
        self.published_between = 0
        """Records of publishers that were listed between the segments."""
        self.roll_check_bytes = NEVER_BYTES
        """Size of the segment from which on `CheckRoll` precedes each entry; set by the shell as the rolling policy says."""
        self._title = f"log {log!r} was taken over or deleted under its writer {owner!r} (epoch {epoch})"
        self._log = log
        self._queue: deque[PendingEntry[Waiter]] = deque()
        self._in_flight: deque[PendingEntry[Waiter]] = deque()
        self.commands: deque[Command[Waiter]] = deque()
        """The commands for the shell, which removes them in order."""
        self._is_sending = False
        """Whether a `SendEntry` is not answered yet."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or in flight."""
        return not self._in_flight and not self._queue

    @property
    def waits_since(self) -> float | None:
        """When the oldest entry was queued that is not acknowledged; None if there is none."""
        oldest = self._in_flight or self._queue
        return oldest[0].queued_at if oldest else None

    @property
    def is_drained(self) -> bool:
        """Whether the writer can leave: it is idle, and its segment is open."""
        return self.is_idle and self.phase not in (Phase.DRAINING, Phase.SWITCHING)

    @property
    def can_roll(self) -> bool:
        """Whether the segment accepts entries and the writer is not about to end."""
        return self.phase is Phase.OPEN and not self.is_closing

    @property
    def has_records(self) -> bool:
        """Whether the open segment holds records, or is about to."""
        return self.acknowledged_offset > self.segment.listed.first_offset or not self.is_idle

    @property
    def has_unreadable(self) -> bool:
        """Whether the last records stay unreadable until another entry is sent."""
        segment = self.segment
        if self._in_flight or self._queue or segment.worth_reading <= segment.readable:
            return False
        return self.phase is not Phase.ENDED and not self.is_closing

    @property
    def can_accept(self) -> bool:
        """Whether the writer accepts records."""
        return self.phase is not Phase.ENDED and not self.is_closing

    def lost(self, cause: BaseException) -> LogFenced:
        """The error of a writer that has lost its log."""
        error = LogFenced(self._title)
        error.__cause__ = cause
        return error

    def next_wall_time_us(self, clock_us: int) -> int:
        """The wall time of an entry that is sent now: never less than that of the entry before."""
        return wall_time_after(self.wall_time_us, clock_us)

    def closed_segment(self, last_entry: int) -> LogSegment:
        """The open segment as it is listed once its ledger is closed.

        Args:
            last_entry: the last entry id of the closed ledger.
        """
        segment = self.segment
        assert not self._in_flight, "a segment is closed once everything sent is acknowledged"
        assert last_entry == segment.entries - 1, "a ledger holds what was appended to it"
        return closed_segment(
            segment.listed,
            records=self.acknowledged_offset - segment.listed.first_offset,
            size_bytes=segment.size_bytes,
            last_entry=last_entry,
            min_time_us=segment.min_time_us,
            max_time_us=self.wall_time_us,
        )

    def step(self, event: Event) -> None:
        """Process one event. After the end, answers that arrive late are ignored; so are answers of a ledger that was given up."""
        if self.phase is Phase.ENDED:
            return
        match event:
            case SendDeferred():
                self._is_sending = False
                if not self._in_flight:
                    self._fail(event.error)
            case LedgerFailed():
                if event.ledger_id == self.segment.listed.ledger_id and self.phase in (Phase.OPEN, Phase.DRAINING):
                    self._fail_ledger(event.error)
            case WriterFailed():
                self._fail(event.error)
            case LogLost():
                self._fail(self.lost(event.cause))
            case RollBegun() | RollChecked():
                self._apply_policy(event)
            case SegmentRecovered() | SegmentListed() | SegmentOpened():
                self._switch(event)
            case CloseRequested() | LeaveBegun() | Abandoned():
                self._end(event)

    # Appending.

    def enqueue(self, entry: PendingEntry[Waiter]) -> None:
        """Queue an encoded entry that has room in the window."""
        assert not self.is_closing and self.phase is not Phase.ENDED, "a writer that closes or has ended accepts no entry"  # noqa: PT018
        entry.first_offset = self.next_offset
        self.next_offset += entry.encoded.count
        self._queue.append(entry)
        if len(self._queue) == 1:
            self._send_next()

    def count_sent(self, size_bytes: int, wall_time_us: int) -> None:
        """The ledger has accepted the entry of `SendEntry`.

        Args:
            size_bytes: length of its payload.
            wall_time_us: the wall time that its payload carries, at least that of the entry before.
        """
        assert self._is_sending, "an entry is sent on command"
        assert wall_time_us >= self.wall_time_us, "wall times of a log do not go back"
        self._is_sending = False
        segment, entry = self.segment, self._queue.popleft()
        entry.entry_id = segment.entries
        segment.entries += 1
        segment.size_bytes += size_bytes
        segment.readable = segment.acknowledged
        self.wall_time_us = wall_time_us
        self._in_flight.append(entry)
        if self._queue or segment.size_bytes >= self.roll_check_bytes:
            self._send_next()

    def acknowledge(self, ledger_id: int, entry_id: int) -> None:
        """A ledger has stored an entry durably. Ignored if the ledger was given up: recovery decides about its entries."""
        phase = self.phase
        if (phase is not Phase.OPEN and phase is not Phase.DRAINING) or ledger_id != self.segment.listed.ledger_id:
            return
        in_flight = self._in_flight
        assert in_flight, "a ledger acknowledges what was sent"
        assert in_flight[0].entry_id == entry_id, "a ledger acknowledges in order, and has one writer"
        self._resolve(in_flight.popleft())
        if phase is Phase.DRAINING and not in_flight:
            self._begin_switch(None)
        if self._queue or self.segment.size_bytes >= self.roll_check_bytes:
            self._send_next()
        if not in_flight and not self._queue:
            self.commands.append(_IDLE)

    def _send_next(self, *, checked: bool = False) -> None:
        """Send the head of the queue if the segment accepts it; at certain sizes the rolling policy is asked first."""
        if self.phase is not Phase.OPEN:
            return
        if self.segment.size_bytes >= self.roll_check_bytes and not checked and not self.is_closing:
            self.commands.append(_CHECK_ROLL)
        elif self._queue:
            assert not self._is_sending, "entries are sent one after the other"
            self._is_sending = True
            entry = self._queue[0]
            self.commands.append(SendEntry(entry, entry.first_offset - self.segment.listed.first_offset))

    def _resolve(self, entry: PendingEntry[Waiter]) -> None:
        assert entry.first_offset == self.acknowledged_offset, "entries are acknowledged in offset order, without gaps"
        assert entry.entry_id == self.segment.acknowledged + 1, "entry ids have no gaps"
        self.acknowledged_offset = entry.first_offset + entry.encoded.count
        self.segment.acknowledged = entry.entry_id
        if entry.has_readers:
            self.segment.worth_reading = entry.entry_id
        self.commands.append(ResolveEntry(entry))

    # Ends of segments.

    def _apply_policy(self, event: RollBegun | RollChecked) -> None:
        if isinstance(event, RollChecked):
            self._send_next(checked=True)
            return
        assert self.can_roll, "only an open segment rolls"
        self.phase = Phase.DRAINING
        if not self._in_flight:
            self._begin_switch(None)

    def _fail_ledger(self, error: BaseException) -> None:
        if isinstance(error, LOST):
            self._fail(self.lost(error))
        elif isinstance(error, UsageError):
            self._fail(error)  # Another segment would fail in the same way.
        else:
            self._begin_switch(error)

    def _begin_switch(self, cause: BaseException | None) -> None:
        assert self.phase in (Phase.OPEN, Phase.DRAINING), "a segment ends once"
        assert cause is not None or not self._in_flight, "a segment is closed once everything sent is acknowledged"
        self.phase = Phase.SWITCHING
        self._is_sending = False
        self.repairs += cause is not None
        self.commands.append(SwitchSegment(cause))

    def _switch(self, event: SegmentRecovered | SegmentListed | SegmentOpened) -> None:
        match event:
            case SegmentRecovered():
                assert self.phase in (Phase.SWITCHING, Phase.LEAVING), "only a segment that was given up is recovered"
                self._adopt_recovery(event.closed)
            case SegmentListed():
                assert self.phase is Phase.SWITCHING, "the next segment follows the end of the one before"
                self._adopt_segment(event.segment)
            case SegmentOpened():
                assert self.phase in (Phase.OPENING, Phase.SWITCHING), "a segment is opened once"
                self._open_segment(event)

    def _adopt_recovery(self, closed: LogSegment) -> None:
        """Acknowledge the entries in flight that recovery found, and queue the others again, in their order."""
        assert closed.ledger_id == self.segment.listed.ledger_id, "the open segment was recovered"
        while self._in_flight and self._in_flight[0].entry_id <= closed.last_entry:
            self._resolve(self._in_flight.popleft())
        for entry in reversed(self._in_flight):
            entry.entry_id = -1
            self._queue.appendleft(entry)
        self._in_flight.clear()
        assert self.acknowledged_offset == closed.end_offset, "recovery keeps what was acknowledged, and finds only what was sent"

    def _adopt_segment(self, segment: LogSegment) -> None:
        """Go on in the next segment: everything in the queue comes after what publishers had listed before it."""
        assert not self._in_flight, "the segment before was closed or recovered"
        assert segment.first_offset >= self.acknowledged_offset, "no offset is used twice"
        self.published_between += segment.first_offset - self.acknowledged_offset
        self.acknowledged_offset = segment.first_offset
        self.next_offset = renumber(self._queue, segment.first_offset)
        self.segment = OpenSegment(segment)

    def _open_segment(self, event: SegmentOpened) -> None:
        segment = self.segment
        assert segment.entries == 0, "the header is the first entry of a segment"
        assert event.wall_time_us >= self.wall_time_us, "wall times of a log do not go back"
        segment.acknowledged, segment.entries, segment.size_bytes = 0, 1, event.size_bytes
        segment.min_time_us = self.wall_time_us = event.wall_time_us
        self.rolls += self.phase is Phase.SWITCHING
        self.phase = Phase.OPEN
        self._send_next()
        if self.is_idle:
            self.commands.append(_IDLE)

    # The end.

    def _end(self, event: CloseRequested | LeaveBegun | Abandoned) -> None:
        self.is_closing = True
        if isinstance(event, LeaveBegun):
            assert self.is_drained, "a writer leaves with nothing pending"
            self.phase = Phase.LEAVING
        elif isinstance(event, Abandoned):
            if event.has_records or not self.is_idle:
                self._fail(OutcomeUnknown(f"the writer of log {self._log!r} was abandoned with entries on their way"))
            else:
                self._end_phase()

    def _fail(self, error: BaseException) -> None:
        self._end_phase()
        self.failure = error
        entries = (*self._in_flight, *self._queue)
        self._in_flight.clear()
        self._queue.clear()
        self.commands.append(StopWriter(error, entries))

    def _end_phase(self) -> None:
        if self.phase in (Phase.OPEN, Phase.DRAINING):
            self.commands.append(AbandonLedger())
        self.phase = Phase.ENDED


def renumber(entries: deque[PendingEntry[Waiter]], first_offset: int) -> int:
    """Assign the offsets from `first_offset` on to entries that are not sent; return the offset after the last."""
    for entry in entries:
        entry.first_offset = first_offset
        first_offset += entry.encoded.count
    return first_offset
