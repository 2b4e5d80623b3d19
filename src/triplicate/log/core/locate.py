"""Locating an offset among segments and among the entries of a segment, and planning ranges for parallel readers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.errors import ArgumentError, OffsetGap
from triplicate.log.core.head import Archive, LogSegment, PageReference, SegmentState


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A part of one segment for one reader. See `plan_ranges`.

    Args:
        ledger_id: the segment's ledger.
        segment_first_offset: offset of the segment's first record.
        first_offset, end_offset: the records to read, end exclusive.
        last_entry: last entry of the ledger where known: an upper bound for the search, no part of the range's identity.
        archive: where the records are if the ledger was archived; likewise.
        log, log_id: the log to search if the ledger was rewritten since; likewise. Empty: no log is searched.
        size_bytes: approximate size of its entries; likewise. None in an open segment.
        is_encrypted: whether the log is encrypted; likewise.
    """

    ledger_id: int
    segment_first_offset: int
    first_offset: int
    end_offset: int
    last_entry: int | None = field(default=None, compare=False)
    archive: Archive | None = field(default=None, compare=False)
    log: str = field(default="", compare=False)
    log_id: str = field(default="", compare=False)
    size_bytes: int | None = field(default=None, compare=False)
    is_encrypted: bool = field(default=False, compare=False)

    @property
    def records(self) -> int:
        return self.end_offset - self.first_offset


def reference_at(references: Sequence[PageReference], offset: int) -> PageReference | None:
    """The reference beneath which an offset lies, or None if it lies after the last."""
    place = bisect_right(references, offset, key=lambda item: item.end_offset)
    return references[place] if place < len(references) else None


def segment_at(segments: Sequence[LogSegment], offset: int) -> LogSegment | None:
    """The closed segment that holds an offset (segments without records hold none), or None if it lies after the last."""
    place = bisect_right(segments, offset, key=lambda item: item.end_offset)
    return segments[place] if place < len(segments) else None


def check_not_lost(segment: LogSegment) -> None:
    """Raise OffsetGap if the segment's records are lost."""
    if segment.state is SegmentState.LOST:
        first, end = segment.first_offset, segment.end_offset
        raise OffsetGap(f"offsets {first} to {end - 1} are lost with ledger {segment.ledger_id}; read before {first}, or from {end} on")


class EntrySearch:
    """Binary search for the entry that holds a record, over entry headers that the caller reads.

    Read the header of `next_entry` and pass it to `record_header`, until `next_entry` is None. Then `entry` is the last entry whose first
    index is not after the record, ignoring entries without records behind it: reading begins there. The first guess is proportional, since
    entries of a segment have similar sizes. Every further one halves the range.

    Args:
        index: of the record within its segment.
        first_entry, last_entry: the entries to search, both included.
        records: the estimated number of records in these entries; 0 if unknown.
    """

    def __init__(self, index: int, first_entry: int, last_entry: int, records: int = 0) -> None:
        self.index = index
        self.entry = first_entry
        self._low = first_entry
        self._high = last_entry
        self._guess = first_entry + (last_entry - first_entry) * index // records if records else -1
        self._done = last_entry < first_entry

    def next_entry(self) -> int | None:
        """The entry whose header is needed, or None when the search is over."""
        if self._done or self._low > self._high:
            return None
        guess, self._guess = self._guess, -1
        return guess if self._low <= guess <= self._high else (self._low + self._high) // 2

    def record_header(self, entry: int, first_index: int, count: int) -> None:
        """Supply the header of `next_entry`."""
        if first_index <= self.index < first_index + count:
            self.entry = entry
            self._done = True
        elif first_index + count <= self.index:
            self.entry = max(self.entry, entry)
            self._low = entry + 1
        else:
            self._high = entry - 1


def plan_ranges(segments: Sequence[LogSegment], start: int, end: int, max_records: int, *, skip_lost: bool = False) -> list[OffsetRange]:
    """Cut the records from `start` to `end` (exclusive) into ranges of at most `max_records`, none over two segments.

    The offsets of the ranges depend only on start, end, max_records and the first offsets of segments, which do not change later: cuts
    are counted from the first record of the plan in each segment. So planning the same records again gives the same ranges, even if the
    open segment was closed and others were added in between. Only merged segments lose the cuts at their former boundaries.

    Args:
        segments: at least those that hold the records, in order; the last may be open.
        skip_lost: leave out the records of lost segments; the ranges have gaps there.

    Raises:
        ArgumentError: start is after end, or max_records is less than 1.
        OffsetGap: the segments do not hold all of the records, or have lost some.
    """
    if start > end or max_records < 1:
        raise ArgumentError(f"cannot plan {max_records} records at a time from {start} to {end}")
    ranges: list[OffsetRange] = []
    position = start
    for segment in segments:
        is_open = segment.state is SegmentState.OPEN
        limit = end if is_open else min(end, segment.end_offset)
        if position >= limit:
            continue
        if segment.first_offset > position:
            break
        if skip_lost and segment.state is SegmentState.LOST:
            position = limit
            continue
        check_not_lost(segment)
        while position < limit:
            cut = min(limit, position + max_records)
            last_entry = None if is_open else segment.last_entry
            size_bytes = None if is_open else segment.size_bytes * (cut - position) // segment.records
            ranges.append(
                OffsetRange(segment.ledger_id, segment.first_offset, position, cut, last_entry, segment.archive, size_bytes=size_bytes)
            )
            position = cut
    if position < end:
        raise OffsetGap(f"no segment holds offset {position}; records {start} to {end} were asked for")
    return ranges
