"""Stream offsets as Spark keeps them in a checkpoint: ``{"logs":{"flights":1234},"v":1}``. Pure.

Spark compares offsets as text, so they are always made here, with keys in order. An offset is exclusive at the end of a batch and
inclusive at its start: the number of records before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplicate.errors import FormatError

VERSION = 1

StreamOffset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive records of a log, and how many bytes they take together."""

    first: int
    end: int
    size_bytes: int


def stream_offset(positions: Mapping[str, int]) -> StreamOffset:
    """The form that Spark stores."""
    return {"logs": {log: positions[log] for log in sorted(positions)}, "v": VERSION}


def positions_of(offset: Mapping[str, Any]) -> dict[str, int]:
    """Offset of each log.

    Raises:
        FormatError: written by a release with another version, or not ours.
    """
    logs = offset.get("logs")
    if offset.get("v") != VERSION or not isinstance(logs, dict) or not all(type(position) is int for position in logs.values()):
        raise FormatError(f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; version {VERSION} is known")
    return {str(log): position for log, position in logs.items()}


def limited(start: Mapping[str, int], end: Mapping[str, int], max_records: int) -> dict[str, int]:
    """An end at most `max_records` after the start in all logs together, shared in proportion to what waits in each.

    Args:
        start: an offset for each log of `end`.
        max_records: at least 1; so something is always delivered while anything waits.
    """
    waiting = {log: max(0, end[log] - start[log]) for log in sorted(end)}
    total = sum(waiting.values())
    if total <= max_records:
        return {log: max(start[log], end[log]) for log in waiting}
    shares = {log: max_records * count // total for log, count in waiting.items()}
    left = max_records - sum(shares.values())
    # What rounding left over, less than one record for each log, goes to the first that still have some.
    for log, count in waiting.items():
        more = min(left, count - shares[log])
        shares[log] += more
        left -= more
    return {log: start[log] + share for log, share in shares.items()}


def limited_by_bytes(
    start: Mapping[str, int], end: Mapping[str, int], spans: Mapping[str, Sequence[Span]], max_bytes: int
) -> dict[str, int]:
    """An end about `max_bytes` after the start in all logs together, shared in proportion to what waits in each.

    Within a span every record counts as the span's average. If there is anything to deliver, at least one record is delivered.

    Args:
        start: an offset for each log of `end`.
        spans: of each log, in order; records without a span count as nothing.
    """
    waiting = {log: _size(spans.get(log, ()), start[log], end[log]) for log in sorted(end)}
    total = sum(waiting.values())
    if total <= max_bytes:
        return {log: max(start[log], end[log]) for log in waiting}
    cut = {log: _reach(spans.get(log, ()), start[log], end[log], max_bytes * size / total) for log, size in waiting.items()}
    if all(cut[log] <= start[log] for log in cut):
        first = next(log for log in cut if start[log] < end[log])
        cut[first] = start[first] + 1
    return cut


def _size(spans: Sequence[Span], start: int, end: int) -> float:
    size = 0.0
    for span in spans:
        records = min(end, span.end) - max(start, span.first)
        if records > 0:
            size += span.size_bytes * records / (span.end - span.first)
    return size


def _reach(spans: Sequence[Span], start: int, end: int, budget_bytes: float) -> int:
    """The offset up to which records fit the budget, between start and end."""
    for span in spans:
        low, high = max(start, span.first), min(end, span.end)
        if low >= high:
            continue
        size = span.size_bytes * (high - low) / (span.end - span.first)
        if size > budget_bytes:
            return low + int((high - low) * budget_bytes / size)
        budget_bytes -= size
    return max(start, end)
