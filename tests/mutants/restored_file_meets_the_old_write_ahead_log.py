"""A restored file is opened beside the write-ahead log of the file that it replaces."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.sqlite_snapshots import INCOMING, SqlSnapshots

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_the_write_ahead_log_of_the_replaced_file_is_not_taken_for_the_new_ones",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def swap(self: SqlSnapshots) -> None:
        self._host.disk.rename(self._owner.path + INCOMING, self._owner.path)

    patch(SqlSnapshots, "_swap", swap)
