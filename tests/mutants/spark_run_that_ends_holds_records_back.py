"""A run of Trigger.AvailableNow ends before records that are fewer than the least number of a batch."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_streaming_limits.py::test_a_run_that_ends_and_one_that_reads_all_hold_nothing_back"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs.streaming import LogStreamReader

    holds = LogStreamReader._holds_back

    def broken(self: LogStreamReader, records: int) -> bool:
        frozen, self._frozen = self._frozen, None
        try:
            return holds(self, records)
        finally:
            self._frozen = frozen

    patch(LogStreamReader, "_holds_back", broken)
