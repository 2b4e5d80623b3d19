"""A search by time finds the first record after the time, and not the first one of it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/reading/test_record_reader.py::test_a_position_is_found_by_offset_time_and_transaction_id"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading.seek import Seek

    time = Seek.time

    async def after(self: Seek, time_us: int, end: int) -> int:
        return await time(self, time_us + 1, end)

    patch(Seek, "time", after)
