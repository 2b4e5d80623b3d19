"""A stream continues with a log that was deleted and recreated under the same name."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/spark/cluster/test_access.py::test_a_log_that_is_made_again_ends_the_stream_however_long_it_is[5]",
    "tests/unit/spark/cluster/test_progress.py::test_without_a_reported_loss_every_record_is_delivered_once_and_in_order",
    "tests/unit/spark/cluster/test_access.py::test_a_batch_that_was_planned_on_another_log_is_not_read_from_the_new_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster import progress

    patch(progress, "is_another", lambda known_id, log_id: False)
