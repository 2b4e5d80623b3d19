"""A query of changes that has read a batch which the query before had planned tells its consumer once more what to do to its rows."""

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
