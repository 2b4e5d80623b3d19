"""The copy for a snapshot is made without a read transaction, so its pages do not belong to the position that was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from triplicate.sql.storage.sqlite_copy import CopyScope, SqliteBackup

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_writers_go_on_while_a_snapshot_is_made_and_it_is_of_one_position",
    "tests/property/test_sqlite_snapshots.py::test_a_restored_copy_that_follows_equals_the_leader[0]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    create = SqliteBackup.__init__

    def create_after_the_transaction(
        self: SqliteBackup, scope: CopyScope, limit: int, source: apsw.Connection, target: apsw.Connection, *rest: Any
    ) -> None:
        source.execute("rollback")
        create(self, scope, limit, source, target, *rest)

    patch(SqliteBackup, "__init__", create_after_the_transaction)
