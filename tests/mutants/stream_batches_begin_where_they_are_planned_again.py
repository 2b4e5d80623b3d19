"""A batch's end does not record its beginning, so a first batch planned again silently begins at the log's present start."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/spark/cluster/test_access.py::test_a_first_batch_that_is_planned_again_begins_where_it_began",
    "tests/unit/spark/cluster/test_access.py::test_a_batch_with_which_a_log_begins_is_planned_again_as_it_was",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster import progress
    from triplicate.spark.core import offsets

    patch(progress, "LogPositions", lambda logs, left, begun=None: offsets.LogPositions(logs, left))
