"""A batch that never reaches its least number of records is held back beyond the greatest delay."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_streaming_limits.py::test_a_small_batch_is_held_back_until_it_is_large_enough_or_the_delay_is_over"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs.streaming import LogStreamReader

    def broken(self: LogStreamReader, records: int) -> bool:
        return 0 < records < (self._read.min_offsets_per_trigger or 0) and self._frozen is None and self._triggered_at > 0

    patch(LogStreamReader, "_holds_back", broken)
