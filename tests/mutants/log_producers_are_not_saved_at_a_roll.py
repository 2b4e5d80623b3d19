"""A writer that rolls or leaves does not save its table of producers: what they appended before the open segment is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_the_next_writer_knows_what_the_one_before_appended[True-close]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    def nothing(self: Any, end_offset: int) -> tuple[()]:
        return ()

    patch(SegmentTransitions, "_counted", nothing)
