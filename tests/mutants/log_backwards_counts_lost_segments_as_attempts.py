"""Reading backwards stops at the 20th lost segment in a row, and says that the log changes too fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/reading/test_backward_reader.py::test_any_number_of_lost_segments_in_a_row_is_passed_over"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import OffsetGap
    from triplicate.log.reading import backward_reader
    from triplicate.log.reading.log_reader import STALE_ATTEMPTS

    right = backward_reader.BackwardReader._enter

    async def enter(self: backward_reader.BackwardReader) -> Any:
        before = len(self.lost)
        found = await right(self)
        if len(self.lost) - before >= STALE_ATTEMPTS:
            raise OffsetGap(f"log {self.name!r}: its list changes too fast")
        return found

    patch(backward_reader.BackwardReader, "_enter", enter)
