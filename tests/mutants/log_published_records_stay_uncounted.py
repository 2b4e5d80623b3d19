"""The node of a log's producers ends before the records that publishers have listed: the next take-over takes it for out of date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_records_that_publishers_have_listed_behind_the_counted_ones_need_no_counting"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    counted = SegmentTransitions._counted

    def before(self: Any, end_offset: int) -> Any:
        return counted(self, end_offset - 2)

    patch(SegmentTransitions, "_counted", before)
