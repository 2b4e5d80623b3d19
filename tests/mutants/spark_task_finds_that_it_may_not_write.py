"""A job does not check that it may write before it begins, so each of its tasks fails."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/spark/logs/test_log_source.py::test_a_write_into_a_log_that_is_not_there_is_refused",
    "tests/unit/spark/logs/test_log_source.py::test_a_batch_that_is_there_already_is_neither_read_nor_written",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs import admission

    patch(admission, "admit", lambda write: None)
