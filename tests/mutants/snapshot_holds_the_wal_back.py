"""A write-ahead log over its limit continues to grow while a snapshot needs it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import ReaderPool

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_snapshot_that_holds_the_write_ahead_log_back_is_ended_and_the_log_emptied"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def keep(self: ReaderPool, older_than_s: float, wal_bytes: int) -> bool:
        return False

    patch(ReaderPool, "end_oldest", keep)
