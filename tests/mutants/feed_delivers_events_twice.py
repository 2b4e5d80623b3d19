"""A query that rereads a batch planned by its predecessor delivers the batch's schema events a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.spark.change_feed.change_source import ChangesStreamReader

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_events_come_once_where_a_batch_is_read_by_the_query_after",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    partitions = ChangesStreamReader.partitions

    def forgetful(self: ChangesStreamReader, start: Any, end: Any) -> Any:
        self._passed = None
        return partitions(self, start, end)

    patch(ChangesStreamReader, "partitions", forgetful)
