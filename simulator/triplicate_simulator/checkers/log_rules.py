"""The rules for logs, under all faults: judged by what writers, publishers and readers saw.

The checkers know nothing of the code. A record is a byte string that is unique in the run, so it identifies its writer. An unknown outcome
is no event: its records may be in the log, once, or not. The rules:

1. a record has one offset, and every reader of that offset gets that record, for ever; every record that is read was written;
2. readers get every offset from their start on, in order, without gaps or repeats;
3. an acknowledged record stays at its offset until it is truncated, and no more is truncated than was requested; retention removes whole
  segments, the oldest first, and only while more is left than the log was to keep;
4. the records of one writer are in the log in the order in which they were appended, and none is missing before one that is there;
5. a batch of a publisher is in the log once if any publish of it succeeded, otherwise once or not at all; whole, contiguous and in order;
  and never by an attempt that was reported as not published;
6. a take-over ends the epochs before it: beyond its first offset there are no records of theirs, and none of their appends succeeds;
7. wall times do not go back within a ledger, nor from one writer's segment to the next;
8. the readable end is an offset up to which records exist, and never lies before an end reported as readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.numbered_events import NumberedSubmitted

Session = tuple[str, str, int]
"""One writer of one log: log, name, and epoch."""


@dataclass(frozen=True, slots=True)
class LogAcquired:
    """A writer acquired the log and writes from an offset on."""

    time_s: float
    log: str
    writer: str
    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LogSubmitted:
    """Records were passed to a writer. The order of these events is the order of the calls."""

    time_s: float
    log: str
    writer: str
    epoch: int
    records: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LogAcknowledged:
    """Records were acknowledged to a writer, with their offsets."""

    time_s: float
    log: str
    writer: str
    epoch: int
    first_offset: int
    records: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LogReadable:
    """Records before an offset are readable from now on: a writer learned so, or was idle for long enough."""

    time_s: float
    log: str
    offset: int


@dataclass(frozen=True, slots=True)
class BatchStaged:
    """Records were staged, in several ledgers, to be published as a batch. `attempt` identifies this staging among others of the batch."""

    time_s: float
    log: str
    application: str
    batch: int
    attempt: str
    ledgers: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True, slots=True)
class BatchPublished:
    """A publish reported that a batch is in the log, with its offsets (-1: not known). `already`: an earlier publish put it there."""

    time_s: float
    log: str
    application: str
    batch: int
    attempt: str
    first_offset: int
    end_offset: int
    already: bool


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """A publisher gave up an attempt: every publish of it reported that none of it was published."""

    time_s: float
    log: str
    application: str
    batch: int
    attempt: str


@dataclass(frozen=True, slots=True)
class ReadingBegan:
    """A reader starts at an offset. Every start has a name of its own in `reader`."""

    time_s: float
    log: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True)
class LogRead:
    """A reader received the next entry. `epoch` is that of its writer, 0 if it was published."""

    time_s: float
    log: str
    reader: str
    first_offset: int
    records: tuple[bytes, ...]
    ledger_id: int
    epoch: int
    wall_time_us: int


@dataclass(frozen=True, slots=True)
class ReadingEnded:
    """A reader that was to read up to an offset reports that it has."""

    time_s: float
    log: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True)
class ReadingRefused:
    """A reader got an error for records that were not truncated."""

    time_s: float
    log: str
    reader: str
    reason: str


@dataclass(frozen=True, slots=True)
class EndRead:
    """The end of the readable records was requested."""

    started_s: float
    ended_s: float
    log: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True)
class TruncationRequested:
    """Records before an offset may be gone from now on: a truncation was requested."""

    time_s: float
    log: str
    offset: int


@dataclass(frozen=True, slots=True)
class RetentionSet:
    """From now on the oldest segments may be removed while more than `keep_bytes` are closed. No segment is larger than
    `segment_high_bytes`."""

    time_s: float
    log: str
    keep_bytes: int
    segment_high_bytes: int


@dataclass(frozen=True, slots=True)
class ListedSegment:
    """A closed segment of a log: its ledger, which identifies it, its offsets, and its size. `is_going`: marked for deletion."""

    ledger_id: int
    first_offset: int
    end_offset: int
    size_bytes: int
    is_going: bool = False


@dataclass(frozen=True, slots=True)
class SegmentsListed:
    """A client listed a log's first offset and its closed segments."""

    time_s: float
    log: str
    reader: str
    first_offset: int
    segments: tuple[ListedSegment, ...]


@dataclass(frozen=True, slots=True)
class FinalLogRead:
    """At the end a reader has read the log from its first offset to its end."""

    time_s: float
    log: str
    reader: str
    first_offset: int
    end_offset: int


class _LogContents:
    """The records that were read of each log: the record at each offset, and its first reader."""

    def __init__(self, history: History) -> None:
        self.records: dict[str, dict[int, bytes]] = {}
        self.places: dict[str, dict[bytes, int]] = {}
        for event in history.of(LogRead):
            records = self.records.setdefault(event.log, {})
            places = self.places.setdefault(event.log, {})
            for place, record in enumerate(event.records, event.first_offset):
                records.setdefault(place, record)
                places.setdefault(record, place)
        self.finished = {event.log: event for event in history.of(FinalLogRead)}
        readers = {event.reader for event in history.of(FinalLogRead)}
        self.final: dict[str, dict[int, bytes]] = {log: {} for log in self.finished}
        for event in history.of(LogRead):
            if event.reader in readers:
                self.final[event.log].update(enumerate(event.records, event.first_offset))

    def place(self, log: str, record: bytes) -> int | None:
        """The offset at which a record was read."""
        return self.places.get(log, {}).get(record)


def one_record_at_one_offset(history: History, verdict: Verdict) -> None:
    """Rule 1."""
    written: set[tuple[str, bytes]] = set()
    for event in history.events:
        if isinstance(event, LogSubmitted):
            written.update((event.log, record) for record in event.records)
        elif isinstance(event, BatchStaged):
            written.update((event.log, record) for ledger in event.ledgers for record in ledger)
        elif isinstance(event, NumberedSubmitted):
            written.add((event.log, event.record))
    records: dict[tuple[str, int], tuple[bytes, str]] = {}
    places: dict[tuple[str, bytes], tuple[int, str]] = {}
    for event in history.of(LogRead):
        for place, record in enumerate(event.records, event.first_offset):
            verdict.decided += 1
            first = records.setdefault((event.log, place), (record, event.reader))
            if first[0] != record:
                verdict.violations.append(
                    f"offset {place} of {event.log}: {first[1]} has {_short(first[0])}, {event.reader} has {_short(record)}"
                )
            where = places.setdefault((event.log, record), (place, event.reader))
            if where[0] != place:
                verdict.violations.append(
                    f"{_short(record)} of {event.log} is there twice: {where[1]} has it at {where[0]}, {event.reader} at {place}"
                )
            if (event.log, record) not in written:
                verdict.violations.append(f"offset {place} of {event.log}: {event.reader} has {_short(record)}, which was never written")


def readers_miss_nothing(history: History, verdict: Verdict) -> None:
    """Rule 2."""
    following: dict[tuple[str, str], int] = {}
    for event in history.events:
        if isinstance(event, ReadingBegan):
            following[event.log, event.reader] = event.offset
        elif isinstance(event, LogRead):
            verdict.decided += 1
            expected = following.get((event.log, event.reader))
            if expected != event.first_offset:
                verdict.violations.append(
                    f"{event.reader} of {event.log} was given offset {event.first_offset} at {event.time_s:.6f} where {expected} was next"
                )
            following[event.log, event.reader] = event.first_offset + len(event.records)
        elif isinstance(event, ReadingEnded):
            verdict.decided += 1
            reached = following.get((event.log, event.reader))
            if reached != event.offset:
                verdict.violations.append(f"{event.reader} of {event.log} says it has read up to {event.offset}, was given up to {reached}")
        elif isinstance(event, ReadingRefused):
            verdict.violations.append(f"{event.reader} of {event.log} was refused at {event.time_s:.6f}: {event.reason}")


def acknowledged_records_stay(history: History, verdict: Verdict) -> None:
    """Rule 3."""
    known = _LogContents(history)
    allowed = _removable_offsets(history, verdict)
    for log, finished in known.finished.items():
        verdict.decided += 1
        if finished.first_offset > allowed.get(log, 0):
            verdict.violations.append(
                f"{log} begins at {finished.first_offset}, though nothing from {allowed.get(log, 0)} on was to be truncated"
            )
    acknowledged: dict[tuple[str, int], bytes] = {}
    for event in history.of(LogAcknowledged):
        read = known.records.get(event.log, {})
        end = known.finished.get(event.log)
        for place, record in enumerate(event.records, event.first_offset):
            verdict.decided += 1
            what = f"{_short(record)} was acknowledged to {event.writer} at {event.time_s:.6f} as offset {place} of {event.log}"
            if acknowledged.setdefault((event.log, place), record) != record:
                verdict.violations.append(f"{what}, and so was {_short(acknowledged[event.log, place])}")
            if read.get(place, record) != record:
                verdict.violations.append(f"{what}, where readers have {_short(read[place])}")
            if end is not None and place >= end.first_offset and place not in known.final[event.log]:
                verdict.violations.append(f"{what} and is lost: the log ends at {end.end_offset}")


def _removable_offsets(history: History, verdict: Verdict) -> dict[str, int]:
    """By log, the offset before which records may be gone: by a truncation, or by a retention that removed no more than it may."""
    allowed: dict[str, int] = {}
    retention: dict[str, RetentionSet] = {}
    listed: dict[str, dict[int, ListedSegment]] = {}
    for event in history.events:
        if isinstance(event, TruncationRequested):
            allowed[event.log] = max(allowed.get(event.log, 0), event.offset)
        elif isinstance(event, RetentionSet):
            retention[event.log] = event
        elif isinstance(event, SegmentsListed):
            ever = listed.setdefault(event.log, {})
            ever.update((segment.ledger_id, segment) for segment in event.segments)
            limit = retention.get(event.log)
            if limit is None or event.first_offset <= allowed.get(event.log, 0):
                continue
            verdict.decided += 1
            fault = _retention_fault(event, limit, ever)
            if fault:
                verdict.violations.append(f"{event.log} began at {event.first_offset} at {event.time_s:.6f}, though {fault}")
            # Each fault is reported once.
            allowed[event.log] = event.first_offset
    return allowed


def _retention_fault(event: SegmentsListed, limit: RetentionSet, ever: dict[int, ListedSegment]) -> str:
    """Why a log must not start where it does, if retention moved its start; empty if it may.

    Segments closed between the cut and the listing count as if they had existed at the cut, which can only excuse.
    """
    first = event.first_offset
    kept = {segment.ledger_id: segment for segment in event.segments if not segment.is_going and segment.first_offset >= first}
    for segment in ever.values():
        if segment.first_offset < first < segment.end_offset:
            return f"that is within the segment from {segment.first_offset} to {segment.end_offset}, and was not requested"
    # Empty segments may lie at the cut. Which of them were removed before it cannot be seen, so all that are gone count.
    last = [segment for segment in ever.values() if segment.end_offset == first and segment.ledger_id not in kept]
    is_known = any(segment.first_offset < first for segment in last)
    last_bytes = sum(segment.size_bytes for segment in last) if is_known else limit.segment_high_bytes
    total_bytes = last_bytes + sum(segment.size_bytes for segment in kept.values())
    if total_bytes > limit.keep_bytes:
        return ""
    return f"with the last segment before that it has had {total_bytes} bytes, and was to keep {limit.keep_bytes}"


def writers_keep_their_order(history: History, verdict: Verdict) -> None:
    """Rule 4."""
    known = _LogContents(history)
    sessions: dict[Session, list[bytes]] = {}
    for event in history.of(LogSubmitted):
        sessions.setdefault((event.log, event.writer, event.epoch), []).extend(event.records)
    for (log, writer, epoch), records in sessions.items():
        places = [known.place(log, record) for record in records]
        there = [(number, place) for number, place in enumerate(places) if place is not None]
        verdict.decided += len(there)
        for (left, before), (right, after) in pairwise(there):
            if after <= before:
                verdict.violations.append(
                    f"{_short(records[right])} of {writer} (epoch {epoch}) was appended after {_short(records[left])} "
                    f"and is before it in {log}: at {after}, not after {before}"
                )
        if log not in known.finished:
            continue
        first = known.finished[log].first_offset
        behind: tuple[int, int] | None = None
        for number in reversed(range(len(places))):
            place = places[number]
            if place is not None:
                behind = (number, place)
            # A record that was truncated before any read is unknown.
            elif behind is not None and (not first or behind[1] - (behind[0] - number) >= first):
                verdict.violations.append(
                    f"{_short(records[number])} of {writer} (epoch {epoch}) is not in {log}, but {_short(records[behind[0]])} behind it is"
                )


def batches_are_there_once(history: History, verdict: Verdict) -> None:
    """Rule 5."""
    known = _LogContents(history)
    offered: dict[tuple[str, str, int], dict[str, tuple[bytes, ...]]] = {}
    for event in history.of(BatchStaged):
        attempts = offered.setdefault((event.log, event.application, event.batch), {})
        attempts[event.attempt] = tuple(record for ledger in event.ledgers for record in ledger)
    published: dict[tuple[str, str, int], list[BatchPublished]] = {}
    for reported in history.of(BatchPublished):
        published.setdefault((reported.log, reported.application, reported.batch), []).append(reported)
    refused = {(event.log, event.application, event.batch, event.attempt): event.time_s for event in history.of(BatchRefused)}
    last: dict[tuple[str, str], tuple[int, int]] = {}
    for (log, application, batch), attempts in sorted(offered.items()):
        name = f"batch {batch} of {application} in {log}"
        verdict.decided += 1
        there = {attempt: _span(known, log, records) for attempt, records in attempts.items()}
        present = [attempt for attempt, span in there.items() if span is not None]
        if len(present) > 1:
            verdict.violations.append(f"{name} is there {len(present)} times, by {', '.join(present)}")
        for attempt in present:
            refused_s = refused.get((log, application, batch, attempt))
            if refused_s is not None:
                verdict.violations.append(f"{name}, staged by {attempt}, is there; at {refused_s:.6f} its publisher learned that it is not")
            span = there[attempt]
            assert span is not None
            finished = known.finished.get(log)
            if span[1] < 0 and finished is not None and span[0] >= finished.first_offset:
                verdict.violations.append(
                    f"{name}, staged by {attempt}, begins at {span[0]} and is not there whole, in one piece and in order"
                )
            before = last.get((log, application))
            if before is not None and before[1] > span[0]:
                verdict.violations.append(f"{name} begins at {span[0]}, before the end of batch {before[0]}, {before[1]}")
            last[log, application] = (batch, span[1])
        _judge_publishes(name, published.get((log, application, batch), []), attempts, there, known.finished.get(log), verdict)


def _span(known: _LogContents, log: str, records: tuple[bytes, ...]) -> tuple[int, int] | None:
    """Offsets of the records of an attempt: first and end. None if no record is there; an end of -1 if they are incomplete or not
    contiguous."""
    places = [known.place(log, record) for record in records]
    there = [place for place in places if place is not None]
    if not there:
        return None
    is_whole = len(there) == len(places) and all(right == left + 1 for left, right in pairwise(there))
    return there[0], (there[-1] + 1 if is_whole else -1)


def _judge_publishes(
    name: str,
    publishes: list[BatchPublished],
    attempts: dict[str, tuple[bytes, ...]],
    there: dict[str, tuple[int, int] | None],
    finished: FinalLogRead | None,
    verdict: Verdict,
) -> None:
    """Judge the results of all publishes of one batch."""
    fresh = [event for event in publishes if not event.already]
    if len(fresh) > 1:
        verdict.violations.append(f"{name} was published by {len(fresh)} publishes: {', '.join(event.attempt for event in fresh)}")
    for event in publishes:
        verdict.decided += 1
        if finished is None or 0 <= event.first_offset < finished.first_offset:
            continue
        holding = [attempt for attempt, span in there.items() if span is not None and (event.already or attempt == event.attempt)]
        # A batch that is there already is reported without its attempt, which may be one without records.
        if not holding and (all(attempts.values()) if event.already else attempts.get(event.attempt)):
            verdict.violations.append(f"{name} was published at {event.time_s:.6f} (staged by {event.attempt}) and is not in the log")
        for attempt in holding if event.first_offset >= 0 else ():
            if there[attempt] != (event.first_offset, event.end_offset):
                verdict.violations.append(
                    f"{name} was reported at {event.first_offset} to {event.end_offset} and is at {there[attempt]} (staged by {attempt})"
                )


def epochs_end_what_was_before(history: History, verdict: Verdict) -> None:
    """Rule 6."""
    acquisitions: dict[str, list[LogAcquired]] = {}
    for acquired in history.of(LogAcquired):
        acquisitions.setdefault(acquired.log, []).append(acquired)
    for log, events in acquisitions.items():
        events.sort(key=lambda event: event.epoch)
        for left, right in pairwise(events):
            verdict.decided += 1
            if left.epoch == right.epoch:
                verdict.violations.append(f"{left.writer} and {right.writer} have both taken {log} over in epoch {left.epoch}")
            if left.start_offset > right.start_offset:
                verdict.violations.append(
                    f"epoch {right.epoch} of {log} begins at {right.start_offset}, epoch {left.epoch} before it at {left.start_offset}"
                )
    offered: dict[tuple[str, bytes], float] = {}
    for submitted in history.of(LogSubmitted):
        offered.update(((submitted.log, record), submitted.time_s) for record in submitted.records)
    for event in history.of(LogAcknowledged):
        for later in acquisitions.get(event.log, ()):
            if later.epoch <= event.epoch:
                continue
            verdict.decided += 1
            end = event.first_offset + len(event.records)
            if end > later.start_offset:
                verdict.violations.append(
                    f"{event.writer} (epoch {event.epoch}) got appends acknowledged up to {end} of {event.log}, but epoch {later.epoch} "
                    f"begins at {later.start_offset}"
                )
            submitted_s = max(offered.get((event.log, record), 0.0) for record in event.records)
            if submitted_s > later.time_s:
                verdict.violations.append(
                    f"{event.writer} (epoch {event.epoch}) got records of {submitted_s:.6f} acknowledged in {event.log}, but "
                    f"{later.writer} had it since {later.time_s:.6f} (epoch {later.epoch})"
                )
    _epochs_of_reads(history, acquisitions, verdict)


def _epochs_of_reads(history: History, acquisitions: dict[str, list[LogAcquired]], verdict: Verdict) -> None:
    """Records lie between the start of their own epoch and that of the next known epoch."""
    seen: set[tuple[str, int, int]] = set()
    for event in history.of(LogRead):
        if not event.epoch or (event.log, event.first_offset, event.epoch) in seen:
            continue
        seen.add((event.log, event.first_offset, event.epoch))
        for acquired in acquisitions.get(event.log, ()):
            verdict.decided += 1
            end = event.first_offset + len(event.records)
            if end > acquired.start_offset if acquired.epoch > event.epoch else event.first_offset < acquired.start_offset:
                verdict.violations.append(
                    f"{event.reader} was given offset {event.first_offset} of {event.log}, of epoch {event.epoch}, but epoch "
                    f"{acquired.epoch} begins at {acquired.start_offset}"
                )


def wall_times_rise(history: History, verdict: Verdict) -> None:
    """Rule 7."""
    entries: dict[str, dict[int, LogRead]] = {}
    for event in history.of(LogRead):
        # A range may begin within an entry; the entry's time is the same.
        entries.setdefault(event.log, {}).setdefault(event.first_offset, event)
    for log, found in entries.items():
        by_ledger: dict[int, LogRead] = {}
        written: LogRead | None = None
        for _, event in sorted(found.items()):
            for before in (by_ledger.get(event.ledger_id), written if event.epoch else None):
                if before is None:
                    continue
                verdict.decided += 1
                if event.wall_time_us < before.wall_time_us:
                    verdict.violations.append(
                        f"the wall time of {log} goes back: {before.wall_time_us} at offset {before.first_offset}, "
                        f"{event.wall_time_us} at {event.first_offset} (ledgers {before.ledger_id} and {event.ledger_id})"
                    )
            by_ledger[event.ledger_id] = event
            written = event if event.epoch else written


def ends_are_readable(history: History, verdict: Verdict) -> None:
    """Rule 8."""
    finished = {event.log: event for event in history.of(FinalLogRead)}
    readable: dict[str, list[LogReadable]] = {}
    for reported in history.of(LogReadable):
        readable.setdefault(reported.log, []).append(reported)
    for event in history.of(EndRead):
        final = finished.get(event.log)
        if final is not None:
            verdict.decided += 1
            if event.offset > final.end_offset:
                verdict.violations.append(
                    f"{event.reader} read at {event.ended_s:.6f} an end of {event.log} at {event.offset}; it ends at {final.end_offset}"
                )
        # While metadata servers lag the newest segment may be unknown, and an end is as old as they are.
        seen_s = history.seen_since_s(event.started_s)
        for known in readable.get(event.log, ()):
            if known.time_s > seen_s:
                break
            verdict.decided += 1
            if event.offset < known.offset:
                verdict.violations.append(
                    f"{event.reader} read at {event.ended_s:.6f} an end of {event.log} at {event.offset}; it was readable up to "
                    f"{known.offset} at {known.time_s:.6f}"
                )
                break


LOG_CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        one_record_at_one_offset,
        readers_miss_nothing,
        acknowledged_records_stay,
        writers_keep_their_order,
        batches_are_there_once,
        epochs_end_what_was_before,
        wall_times_rise,
        ends_are_readable,
    )
}


def _short(record: bytes) -> str:
    return repr(record[:32])
