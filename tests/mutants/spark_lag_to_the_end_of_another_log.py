"""The lag of a stream is counted to the end of another log of the same name."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/test_lag_listener.py::test_a_log_that_is_gone_or_another_has_no_answer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.spark.cluster.access import LogAccess, Unread
    from triplicate.spark.core.offsets import LogPosition

    unread = LogAccess._unread

    async def broken(self: LogAccess, log: str, position: LogPosition) -> Unread | None:
        return await unread(self, log, replace(position, log_id=None))

    patch(LogAccess, "_unread", broken)
