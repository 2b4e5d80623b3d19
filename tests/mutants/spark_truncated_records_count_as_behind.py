"""Records that were truncated before a stream read them count as unread, with the age of the first that is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

TESTS = ["tests/unit/spark/test_lag_listener.py::test_truncated_records_are_not_behind"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.access import LogAccess, Unread
    from triplicate.spark.core.offsets import LogPosition

    unread = LogAccess._unread

    async def broken(self: LogAccess, log: str, position: LogPosition) -> Unread | None:
        found = await unread(self, log, position)
        return None if found is None else replace(found, first=position.offset)

    patch(LogAccess, "_unread", broken)
