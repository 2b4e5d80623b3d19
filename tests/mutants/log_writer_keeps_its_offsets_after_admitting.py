"""Records that waited for a publish keep the offsets that they had before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

TESTS = [
    "tests/unit/log/publishing/test_request_server.py::test_what_waits_while_the_writer_rolls_comes_after_what_is_published",
    "tests/unit/log/publishing/test_request_server.py::test_a_segment_that_breaks_before_the_roll_does_not_shift_what_was_sent",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import writer_machine

    def keep(entries: Sequence[writer_machine.PendingEntry[Any]], first_offset: int) -> int:
        return entries[-1].end_offset if entries else first_offset

    patch(writer_machine, "renumber", keep)
