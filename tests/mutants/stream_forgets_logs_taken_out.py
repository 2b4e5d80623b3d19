"""A log removed from a subscription disappears from the checkpoint, and is read from its first record when it returns."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/spark/cluster/test_access.py::test_a_log_that_is_taken_out_of_the_subscription_is_refused_and_its_position_kept",
    "tests/unit/spark/cluster/test_access.py::test_another_log_with_the_same_checkpoint_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster import progress

    patch(progress, "unread", lambda positions, logs: {})
