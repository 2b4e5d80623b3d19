"""A node drops a database that is missing from a list which may be stale."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.hosting.database_directory import DatabaseInfo
from triplicate.sql.hosting.database_node import DatabaseNode

TESTS = ["tests/unit/sql/hosting/test_dropping.py::test_nothing_is_given_up_for_a_list_of_databases_that_is_old"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    infos = DatabaseNode._infos

    async def unsynced(self: DatabaseNode, *, synced: bool) -> tuple[dict[str, DatabaseInfo | None], bool]:
        return await infos(self, synced=False)

    patch(DatabaseNode, "_infos", unsynced)
