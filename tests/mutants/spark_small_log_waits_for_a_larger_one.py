"""The limit of a micro-batch is shared in proportion only: a log with few records has none of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplicate.spark.core import offsets

TESTS = ["tests/unit/spark/core/test_offsets.py::test_a_limited_batch_is_as_large_as_allowed_and_no_larger"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def limited(start: Mapping[str, int], end: Mapping[str, int], max_records: int) -> dict[str, int]:
        ends, left = dict(start), max_records
        for log in sorted(end, key=lambda log: start[log] - end[log]):
            more = max(0, min(left, end[log] - start[log]))
            ends[log], left = start[log] + more, left - more
        return ends

    patch(offsets, "limited", limited)
