"""A batch is discarded as already published without a message."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/spark/logs/test_log_source.py::test_a_batch_that_is_there_already_is_neither_read_nor_written",
    "tests/unit/spark/logs/test_writing.py::test_a_version_that_runs_again_adds_nothing_and_leaves_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs import admission, writing

    for room in (admission, writing):
        patch(room, "warn_of_discarded", lambda *facts, records: None)
