"""While a snapshot's copy holds the write-ahead log over its limit, each commit waits for the copy and ends a reader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_write_ahead_log_that_a_copy_for_a_snapshot_needs_delays_nobody_and_ends_no_reader",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SqlSnapshots, "holds_wal", False)
