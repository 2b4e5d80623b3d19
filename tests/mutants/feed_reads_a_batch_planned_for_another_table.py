"""A query reads the first batch of a stream although an earlier query has planned it for another table."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.change_source import _Feed

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_first_batch_that_was_planned_for_another_table_is_not_read",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_Feed, "check_planned", lambda _self, _logs, _start, _end: None)
