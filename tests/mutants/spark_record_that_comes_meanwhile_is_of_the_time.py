"""The end of a log that grows during a search by time is taken for a record of that time."""

from __future__ import annotations

import datetime
from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_reading_times.py::test_a_record_that_comes_while_its_log_is_searched_is_not_of_a_later_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.access import LogAccess

    async def broken(self: LogAccess, log: str, time: datetime.datetime, end: int) -> int | None:
        offset = await self._logs.offset_at(log, time)
        return offset if offset < await self._logs.end_offset(log) else None

    patch(LogAccess, "_offset_at", broken)
