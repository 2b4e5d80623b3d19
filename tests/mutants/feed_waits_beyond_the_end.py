"""A stream whose checkpoint lies beyond the log's end waits until the log has grown that far, and skips the records before."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.change_source import _Feed
from triplicate.spark.cluster.access import LogAccess

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_checkpoint_beyond_the_end_of_the_log_ends_the_query",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def end(self: _Feed, logs: LogAccess, _version: int) -> int:
        return logs.bounds(self.log)[1]

    patch(_Feed, "check_end", end)
