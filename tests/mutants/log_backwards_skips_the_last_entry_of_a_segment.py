"""Reading backwards begins before the last entry of each segment, and believes what it finds there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/reading/test_backward_reader.py::test_every_record_is_delivered_once_the_last_first"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading import backward_reader

    find = backward_reader.find_holder  # type: ignore[attr-defined]

    async def before(view: Any, index: int, last_entry: int, records: int) -> int:
        # Every second entry is a no-op.
        return max(1, await find(view, index, last_entry, records) - 2)

    def anything(*arguments: Any) -> None:
        return

    patch(backward_reader, "find_holder", before)
    patch(backward_reader, "check_continuity", anything)
