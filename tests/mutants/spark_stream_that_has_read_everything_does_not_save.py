"""A stream that has read everything, and is stopped then, leaves the position of its batch before the last."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/cluster/test_watched_positions.py::test_a_stream_that_has_read_everything_saves_before_spark_can_end_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.watched_positions import WatchedPositions

    patch(WatchedPositions, "rest", lambda _self: None)
