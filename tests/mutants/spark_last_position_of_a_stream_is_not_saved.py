"""A stream that is stopped within the interval of its saves leaves an old position."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/cluster/test_watched_positions.py::test_a_stream_saves_what_is_committed_but_not_each_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs.streaming import LogStreamReader

    patch(LogStreamReader, "stop", lambda _self: None)
