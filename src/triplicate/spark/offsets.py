"""Stream offsets as Spark keeps them in a checkpoint: ``{"logs":{"flights":1234},"v":1}``. Pure.

Spark compares offsets as text, so they are always made here, with keys in order. An offset is exclusive at the end of a batch and
inclusive at its start: the number of records before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triplicate.errors import FormatError

VERSION = 1

StreamOffset = dict[str, Any]


def stream_offset(positions: Mapping[str, int]) -> StreamOffset:
    """The form that Spark stores."""
    return {"logs": {log: positions[log] for log in sorted(positions)}, "v": VERSION}


def positions_of(offset: Mapping[str, Any]) -> dict[str, int]:
    """Offset of each log.

    Raises:
        FormatError: written by a release with another version, or not ours.
    """
    if offset.get("v") != VERSION or not isinstance(offset.get("logs"), dict):
        raise FormatError(f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; version {VERSION} is known")
    return {str(log): int(position) for log, position in offset["logs"].items()}


def limited(start: Mapping[str, int], end: Mapping[str, int], max_records: int) -> dict[str, int]:
    """An end at most `max_records` after the start in all logs together, shared in proportion to what waits in each.

    The result depends on the arguments alone, so the same batch is cut again in the same way.
    """
    waiting = {log: max(0, end[log] - start.get(log, end[log])) for log in sorted(end)}
    total = sum(waiting.values())
    if total <= max_records:
        return dict(end)
    cut: dict[str, int] = {}
    left = max_records
    for log, count in waiting.items():
        share = max(1, max_records * count // total) if count else 0
        share = min(share, count, left)
        left -= share
        cut[log] = start.get(log, end[log]) + share
    for log, count in waiting.items():
        more = min(left, count - (cut[log] - start.get(log, end[log])))
        cut[log] += more
        left -= more
    return cut


def backlog(start: Mapping[str, int], end: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """(start, end) of each log that has something between; a log without a start begins at its end of now."""
    return {log: (start[log], end[log]) for log in sorted(end) if start.get(log, end[log]) < end[log]}
