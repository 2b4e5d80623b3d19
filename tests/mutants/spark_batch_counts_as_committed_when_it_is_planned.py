"""The position of a stream's consumer is the end of the batch that is planned, which may never be committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TESTS = ["tests/unit/spark/cluster/test_watched_positions.py::test_a_stream_saves_what_is_committed_but_not_each_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.core.offsets import decode_positions
    from triplicate.spark.logs.streaming import LogStreamReader

    latest_offset, note = LogStreamReader.latestOffset, LogStreamReader._note

    def broken(self: LogStreamReader, start: Mapping[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        end = latest_offset(self, start, limit)
        note(self, decode_positions(end))
        return end

    patch(LogStreamReader, "latestOffset", broken)
    patch(LogStreamReader, "_note", lambda _self, _positions: None)
