"""A change feed takes the columns of a node that lags for those of its snapshot: a column that was added since is missing for good."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed import feed

TESTS = ["tests/unit/spark/change_feed/test_feed_snapshot.py::test_columns_of_a_node_that_lags_are_not_taken_for_those_of_the_content"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(feed, "_check_behind", lambda _lineage, _history: None)
