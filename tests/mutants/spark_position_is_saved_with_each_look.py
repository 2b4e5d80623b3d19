"""A stream writes its position to the metadata with each micro-batch."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/cluster/test_watched_positions.py::test_a_stream_saves_what_is_committed_but_not_each_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from collections.abc import Mapping

    from triplicate.spark.cluster.watched_positions import WatchedPositions
    from triplicate.spark.core.offsets import LogPosition

    note = WatchedPositions.note

    def broken(self: WatchedPositions, positions: Mapping[str, LogPosition]) -> None:
        self._due_at = 0.0
        note(self, positions)

    patch(WatchedPositions, "note", broken)
