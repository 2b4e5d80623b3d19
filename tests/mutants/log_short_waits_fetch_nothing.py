"""A call that ends without a record gives up what it has begun to fetch, and the next one begins from the start."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/reading/test_record_reader.py::test_calls_with_a_short_time_limit_get_all_records_in_the_end[0.002]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading.record_reader import LogRecords

    patch(LogRecords, "_next_entry", lambda self, reader, timeout_s: reader.next_entry(timeout_s))
