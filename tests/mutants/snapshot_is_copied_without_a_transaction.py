"""The copy for a snapshot is made without a read transaction, so its pages do not belong to the position that was read."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.sqlite_snapshots import SqliteCopy

TESTS = [
    "tests/unit/sql/test_sqlite_snapshots.py::test_writers_go_on_while_a_snapshot_is_made_and_it_is_of_one_position",
    "tests/property/test_rowlog_snapshots.py::test_a_restored_copy_that_follows_equals_the_leader[0]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    begin = SqliteCopy._begin

    def begin_and_let_go(self: SqliteCopy) -> None:
        begin(self)
        assert self._source is not None
        self._source.execute("rollback")

    patch(SqliteCopy, "_begin", begin_and_let_go)
