"""Stream offsets as Spark keeps them in a checkpoint: ``{"ids":{"flights":"5f0c…"},"logs":{"flights":1234},"v":2}``. Pure.

Spark compares offsets as text, so they are always made here, with keys in order. An offset is exclusive at the end of a batch and
inclusive at its start: the number of records before it. The ids say which log it was: a log that is deleted and made again has another.
Where a batch does not begin at the end of the one before it, its end says where (``"begun":{"flights":0}``): Spark keeps no other start,
and a batch that is planned again must begin where it began.
Version 1 holds no ids; it is read, and the change feed still writes it, since the log of a database has a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from triplicate.errors import FormatError

VERSION = 2
_VERSION_WITHOUT_IDS = 1

StreamOffset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive records of a log, and how many bytes they take together."""

    first: int
    end: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in one log: the number of records before it, and the log's id, None where an earlier release wrote the checkpoint."""

    offset: int
    log_id: str | None


@dataclass(frozen=True, slots=True)
class LogPositions:
    """Where a stream stands.

    Args:
        logs: position in each log that is read.
        left: positions in logs that were read once and are not read now; they go on from there when they are read again.
        begun: of the end of a batch: where it begins to read a log, where that is not the position at which the batch before it ended.
    """

    logs: Mapping[str, LogPosition]
    left: Mapping[str, LogPosition] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)

    def get(self, log: str) -> LogPosition | None:
        """The position in a log, read now or not."""
        return self.logs.get(log) or self.left.get(log)


def encode_positions(positions: LogPositions) -> StreamOffset:
    """The form that Spark stores."""
    every = {**positions.left, **positions.logs}
    offset: StreamOffset = {"begun": dict(sorted(positions.begun.items()))} if positions.begun else {}
    offset["ids"] = {log: every[log].log_id for log in sorted(every) if every[log].log_id is not None}
    if positions.left:
        offset["left"] = _numbers(positions.left)
    return {**offset, "logs": _numbers(positions.logs), "v": VERSION}


def _numbers(positions: Mapping[str, LogPosition]) -> dict[str, int]:
    return {log: positions[log].offset for log in sorted(positions)}


def decode_positions(offset: Mapping[str, Any]) -> LogPositions:
    """Undo `encode_positions`; also of version 1.

    Raises:
        FormatError: written by a release with another version, or not ours.
    """
    version = offset.get("v")
    logs, left, begun = offset.get("logs"), offset.get("left", {}), offset.get("begun", {})
    ids = offset.get("ids") if version == VERSION else {}
    known = version in (VERSION, _VERSION_WITHOUT_IDS)
    if not (known and _holds(logs, int) and _holds(left, int) and _holds(begun, int) and _holds(ids, str)):
        raise FormatError(
            f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; "
            f"versions {_VERSION_WITHOUT_IDS} and {VERSION} are known"
        )
    return LogPositions(_positions(logs, ids), _positions(left, ids), begun)


def _positions(numbers: Mapping[str, int], ids: Mapping[str, str]) -> dict[str, LogPosition]:
    return {log: LogPosition(number, ids.get(log)) for log, number in numbers.items()}


def _holds(part: Any, kind: type) -> TypeGuard[dict[str, Any]]:
    return isinstance(part, dict) and all(type(value) is kind for value in part.values())


def stream_offset(positions: Mapping[str, int]) -> StreamOffset:
    """An offset of version 1, for a stream whose logs cannot be made again under their names."""
    return {"logs": {log: positions[log] for log in sorted(positions)}, "v": _VERSION_WITHOUT_IDS}


def positions_of(offset: Mapping[str, Any]) -> dict[str, int]:
    """Offset of each log that is read. Raises as `decode_positions`."""
    return {log: position.offset for log, position in decode_positions(offset).logs.items()}


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
