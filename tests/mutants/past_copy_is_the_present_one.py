"""A copy of a database as it was begins with the node's own one, although that is later."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_a_copy_is_not_made_of_one_that_moves_beyond_its_position"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    copy_to = SqlSnapshots.copy_to

    async def copy_however_late(self: SqlSnapshots, path: str, latest: int | None) -> bool:
        return await copy_to(self, path, None)

    patch(SqlSnapshots, "copy_to", copy_however_late)
