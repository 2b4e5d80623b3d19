"""Which closed segments are rewritten into new ledgers, and which of their entries the new ledger has.

A run is a row of neighbouring closed segments that one new ledger replaces. All segments of a run have one epoch, since a reader gives
every entry of a ledger the ledger's epoch. Archived segments and those marked for deletion are never part of a run.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import CorruptionError
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.payload import CONTROL_KINDS, decode_entry, decode_header

RUN_SEGMENTS = 1000
"""No run is longer, so that one change of the list stays small."""
_FIRST_INDEX = slice(16, 24)
_U64 = struct.Struct("<Q")

RETAINED_SHARE = 8
"""A merged segment is at most this part of what a log retains."""

Run = tuple[LogSegment, ...]


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Which segments are merged.

    Args:
        below_bytes: segments smaller than this.
        target_bytes: no merged segment is larger.
        oldest_us: only segments whose last entry is not after this wall time.
        span_us: no merged segment spans a longer wall time.
        least: runs of fewer segments are not merged.
        every: also merge a run in which one segment holds more than half of the bytes. Otherwise that segment is left out, so that a byte
            is only written again when its segment doubles in size.
    """

    below_bytes: int
    target_bytes: int
    oldest_us: int
    span_us: int = 2**62
    least: int = 2
    every: bool = False


def merge_limits(settings: LogClientSettings, log: LogSettings, now_us: int, *, least: int, every: bool) -> MergeLimits:
    """The limits of a log. Retention removes whole segments, so a merged one must be small compared with the retained size."""
    target_bytes = settings.merge_target_bytes
    if log.retain_size_bytes:
        target_bytes = min(target_bytes, log.retain_size_bytes // RETAINED_SHARE)
    span_us = int(log.retain_age_s * 1_000_000 / RETAINED_SHARE) if log.retain_age_s else 2**62
    oldest_us = now_us - int(settings.merge_after_s * 1_000_000)
    return MergeLimits(settings.merge_below_bytes, target_bytes, oldest_us, span_us, least, every)


def reduced_runs(segments: Iterable[LogSegment]) -> list[Run]:
    """Segments with fewer copies than their log asks for, each a run of its own."""
    return [(segment,) for segment in segments if segment.reduced is not None and segment.state is SegmentState.CLOSED]


def small_neighbours(segments: Iterable[LogSegment], limits: MergeLimits) -> list[Run]:
    """Rows of neighbouring segments that are small and old enough to be merged; which of them make a run depends on their epochs."""
    rows: list[list[LogSegment]] = [[]]
    for segment in segments:
        is_small = segment.size_bytes < limits.below_bytes and segment.max_time_us <= limits.oldest_us
        if segment.state is SegmentState.CLOSED and segment.records and is_small:
            rows[-1].append(segment)
        elif rows[-1]:
            rows.append([])
    return [tuple(row) for row in rows if len(row) >= limits.least]


def merge_runs(row: Run, epochs: Mapping[int, int], limits: MergeLimits) -> list[Run]:
    """The runs of a row of small neighbours.

    Args:
        epochs: by ledger id; a segment without one is left alone.
    """
    runs: list[Run] = []
    current: list[LogSegment] = []
    size = 0
    for segment in row:
        epoch = epochs.get(segment.ledger_id)
        fits = size + segment.size_bytes <= limits.target_bytes and len(current) < RUN_SEGMENTS
        fits = fits and _span_us([*current[:1], segment]) <= limits.span_us
        if current and not (fits and epoch is not None and epoch == epochs[current[0].ledger_id]):
            runs += _worth_it(tuple(current), limits)
            current, size = [], 0
        if epoch is not None:
            current.append(segment)
            size += segment.size_bytes
    return runs + _worth_it(tuple(current), limits)


def _span_us(segments: Sequence[LogSegment]) -> int:
    return max(segment.max_time_us for segment in segments) - min(segment.min_time_us for segment in segments)


def _worth_it(run: Run, limits: MergeLimits) -> list[Run]:
    waiting, found = [run], []
    while waiting:
        run = waiting.pop()
        if len(run) < limits.least:
            continue
        sizes = [segment.size_bytes for segment in run]
        if limits.every or 2 * max(sizes) <= sum(sizes):
            found.append(run)
            continue
        place = sizes.index(max(sizes))
        waiting += [run[place + 1 :], run[:place]]
    return sorted(found, key=lambda run: run[0].first_offset)


def is_kept(payload: bytes, place: int, run: Run) -> bool:
    """Whether an entry of the segment at a place of a run is part of the new ledger. A segment rewritten alone keeps every entry.

    Merged segments keep every record, and the control records that concern records. The header of the first segment is kept
    for all, since they have one epoch, and no-ops have no use once the segment is closed. An encrypted entry says its kind in clear, since
    rewriting needs no key.
    """
    header = decode_header(payload) if len(run) > 1 else None
    if header is None or not header.is_control:
        return True
    if header.encryption is not None:
        kind = CONTROL_KINDS[header.encryption.control - 1]
    else:
        control = decode_entry(payload).control
        kind = control["kind"] if control is not None else ""
    return kind != "noop" and (kind != "segment" or place == 0)


def with_first_index(payload: bytes, first_index: int) -> bytes:
    """The payload of an entry at another place of its segment: only its first index changes."""
    return b"".join((payload[: _FIRST_INDEX.start], _U64.pack(first_index), payload[_FIRST_INDEX.stop :]))


class RecordsDigest:
    """A digest of consecutive entries. Equal digests mean the same records at the same offsets.

    Args:
        first_offset: offset of the first record that will be added.
    """

    def __init__(self, first_offset: int) -> None:
        self.next_offset = first_offset
        self.entries = 0
        self.size_bytes = 0
        self._digest = hashlib.sha256()

    def add(self, payload: bytes, segment_first_offset: int, where: Callable[[], str]) -> int:
        """Count an entry and return the offset of its first record.

        Raises:
            CorruptionError: it is not the entry that follows. FormatError: it is no entry of a log.
        """
        header = decode_header(payload)
        offset = segment_first_offset + header.first_index
        if offset != self.next_offset:
            raise CorruptionError(f"{where()} holds offset {offset} where {self.next_offset} follows")
        self.next_offset += header.count
        self.entries += 1
        self.size_bytes += len(payload)
        self._digest.update(_U64.pack(len(payload)))
        self._digest.update(with_first_index(payload, offset))
        return offset

    def facts(self) -> tuple[int, int, int, str]:
        """Offset after the last record, entries, bytes, and a digest of every entry with its offset."""
        return self.next_offset, self.entries, self.size_bytes, self._digest.hexdigest()


def rewritten_segment(run: Sequence[LogSegment], ledger_id: int, size_bytes: int, last_entry: int) -> LogSegment:
    """The segment that takes the place of a run."""
    return LogSegment(
        ledger_id,
        run[0].first_offset,
        run[-1].end_offset - run[0].first_offset,
        size_bytes,
        last_entry,
        min(segment.min_time_us for segment in run),
        max(segment.max_time_us for segment in run),
        SegmentState.CLOSED,
    )
