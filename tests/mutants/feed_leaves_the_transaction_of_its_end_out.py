"""A change feed ends before the transactions of its ending timestamp, which is inclusive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from triplicate.spark.change_feed import change_source

TESTS = ["tests/unit/spark/change_feed/test_feed_limits.py::test_a_read_begins_and_ends_by_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(change_source, "timedelta", lambda **_: timedelta())
