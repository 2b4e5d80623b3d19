"""What waited while publishers' ledgers were listed keeps the offsets that it had before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = [
    "tests/unit/log/test_admissions.py::test_what_waits_while_the_writer_rolls_comes_after_what_is_published",
    "tests/unit/log/test_admissions.py::test_a_segment_that_breaks_before_the_roll_does_not_shift_what_was_sent",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing import log_writer
    from triplicate.log.writing.entry_builder import PendingEntry

    def keep(items: Sequence[PendingEntry], first_offset: int) -> int:
        return items[-1].first_offset + items[-1].encoded.count if items else first_offset

    patch(log_writer, "renumber", keep)
