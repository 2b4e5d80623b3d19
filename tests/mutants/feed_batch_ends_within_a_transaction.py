"""A micro-batch of a change feed ends between two records of one large transaction."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.change_source import _Feed

TESTS = [
    "tests/unit/spark/change_feed/test_feed_limits.py::test_a_transaction_of_several_records_is_in_one_micro_batch[maxversionspertrigger]"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_Feed, "whole", lambda self, logs, end, log_end: end)
