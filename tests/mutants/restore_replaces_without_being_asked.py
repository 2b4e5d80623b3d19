"""A restore takes the place of a database of its name, whether it was asked for that or not."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import Client
from triplicate.errors import SqlError
from triplicate.sql import DatabaseInfo, read_info
from triplicate.sql.hosting import database_backups, restoring

TESTS = [
    "tests/unit/sql/hosting/test_restoring.py::test_a_restore_replaces_a_database_only_when_asked",
    "tests/unit/sql/hosting/test_database_backups.py::test_refusals_change_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def found(client: Client, name: str, *, replaces: bool) -> DatabaseInfo | None:
        try:
            return await read_info(client, name)
        except SqlError:
            return None

    patch(restoring, "check_name", found)
    patch(database_backups, "check_name", found)
