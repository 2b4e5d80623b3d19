"""A repair continues the log where the lost open segment began, so offsets that readers have seen are given again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core import lost_segments
from triplicate.log.core.head import Head

TESTS = ["tests/unit/log/upkeep/test_repair.py::test_an_open_segment_that_is_gone_is_given_up_and_no_offset_is_given_twice"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def where_it_began(head: Head) -> int:
        return head.closed_end

    patch(lost_segments, "end_beyond_doubt", where_it_began)
