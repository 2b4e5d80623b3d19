"""A change feed that is to begin at a time begins silently with the first transaction that was not truncated."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed import change_source

TESTS = ["tests/unit/spark/change_feed/test_feed_limits.py::test_changes_since_a_time_that_may_have_been_truncated_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(change_source._Feed, "start", change_source._Feed._start)
