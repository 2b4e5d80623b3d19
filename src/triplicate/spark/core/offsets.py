"""Stream offsets in Spark's checkpoints: ``{"ids":{"flights":"5f0c…"},"logs":{"flights":1234},"v":2}``. Pure.

Spark compares offsets as text, so they are always encoded here, with sorted keys. An offset is the number of records before it: exclusive
at the end of a batch, inclusive at its start. The ids identify the logs: a log that is deleted and created again has another id.
If a batch does not begin at the end of the previous one, its end has its beginning (``"begun":{"flights":0}``). Spark stores no other
start, and a batch that is planned again must begin at the same offset.
Version 1 has no ids. It can be read, and the change feed still writes it, because the log of a database has a unique name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from triplicate.errors import FormatError

VERSION = 2
_VERSION_WITHOUT_IDS = 1
KNOWN_VERSIONS = (_VERSION_WITHOUT_IDS, VERSION)

StreamOffset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive records of a log, and their total size in bytes."""

    first: int
    end: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in one log: the number of records before it, and the log's id, or None in checkpoints of earlier releases."""

    offset: int
    log_id: str | None


@dataclass(frozen=True, slots=True)
class LogPositions:
    """The position of a stream.

    Args:
        logs: position in each log that is read.
        left: positions in logs that are not read any more. Reading continues there if they are read again.
        begun: in the end of a batch: its first offset in each log for which that is not the end of the previous batch.
    """

    logs: Mapping[str, LogPosition]
    left: Mapping[str, LogPosition] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)

    def get(self, log: str) -> LogPosition | None:
        """The position in a log, whether it is read now or not."""
        return self.logs.get(log) or self.left.get(log)


def encode_positions(positions: LogPositions) -> StreamOffset:
    """Encode for Spark's checkpoint."""
    every = {**positions.left, **positions.logs}
    offset: StreamOffset = {"begun": dict(sorted(positions.begun.items()))} if positions.begun else {}
    offset["ids"] = {log: every[log].log_id for log in sorted(every) if every[log].log_id is not None}
    if positions.left:
        offset["left"] = _numbers(positions.left)
    return {**offset, "logs": _numbers(positions.logs), "v": VERSION}


def _numbers(positions: Mapping[str, LogPosition]) -> dict[str, int]:
    return {log: positions[log].offset for log in sorted(positions)}


def decode_positions(offset: Mapping[str, Any]) -> LogPositions:
    """Decode an offset of this version or of version 1.

    Raises:
        FormatError: the offset has an unknown version, or is not Triplicate's.
    """
    version = offset.get("v")
    logs, left, begun = offset.get("logs"), offset.get("left", {}), offset.get("begun", {})
    ids = offset.get("ids") if version == VERSION else {}
    known = version in KNOWN_VERSIONS
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


def limited(start: Mapping[str, int], end: Mapping[str, int], max_records: int) -> dict[str, int]:
    """Ends at most `max_records` after the start in all logs together, shared in proportion to the waiting records.

    A log with waiting records has one at least, also beyond the limit: no log waits for larger ones.

    Args:
        start: an offset for each log of `end`.
        max_records: at least 1.
    """
    waiting = {log: max(0, end[log] - start[log]) for log in sorted(end)}
    total = sum(waiting.values())
    if total <= max_records:
        return {log: max(start[log], end[log]) for log in waiting}
    logs = sum(count > 0 for count in waiting.values())
    spare = max(0, max_records - logs)
    shares = {log: min(1, count) + spare * max(0, count - 1) // max(1, total - logs) for log, count in waiting.items()}
    left = logs + spare - sum(shares.values())
    # The remainder of the rounding, less than one record per log, goes to the first logs that have more records.
    for log, count in waiting.items():
        more = min(left, count - shares[log])
        shares[log] += more
        left -= more
    return {log: start[log] + share for log, share in shares.items()}


def limited_by_bytes(
    start: Mapping[str, int], end: Mapping[str, int], spans: Mapping[str, Sequence[Span]], max_bytes: int
) -> dict[str, int]:
    """Ends about `max_bytes` after the start in all logs together, shared in proportion to the waiting bytes.

    Each record counts as the average of its span. A log with waiting records has one at least, also beyond the limit.

    Args:
        start: an offset for each log of `end`.
        spans: the spans of each log, in order. Records outside of spans have size 0.
    """
    waiting = {log: _size(spans.get(log, ()), start[log], end[log]) for log in sorted(end)}
    total = sum(waiting.values())
    if total <= max_bytes:
        return {log: max(start[log], end[log]) for log in waiting}
    reached = {log: _reach(spans.get(log, ()), start[log], end[log], max_bytes * size / total) for log, size in waiting.items()}
    return {log: max(offset, min(start[log] + 1, end[log])) for log, offset in reached.items()}


def _size(spans: Sequence[Span], start: int, end: int) -> float:
    size = 0.0
    for span in spans:
        records = min(end, span.end) - max(start, span.first)
        if records > 0:
            size += span.size_bytes * records / (span.end - span.first)
    return size


def _reach(spans: Sequence[Span], start: int, end: int, budget_bytes: float) -> int:
    """The offset between start and end up to which the records fit the budget."""
    for span in spans:
        low, high = max(start, span.first), min(end, span.end)
        if low >= high:
            continue
        size = span.size_bytes * (high - low) / (span.end - span.first)
        if size > budget_bytes:
            return low + int((high - low) * budget_bytes / size)
        budget_bytes -= size
    return max(start, end)
