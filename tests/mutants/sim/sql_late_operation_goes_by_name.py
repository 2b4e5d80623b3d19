"""An operation that has to be repeated takes the database that has the name by then: a late drop drops the next one."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("next_databases_are_left_alone",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import Client
    from triplicate.sql.hosting import database_directory, dropping, placement_changes
    from triplicate.sql.hosting.database_directory import DatabaseEntry

    read_stored = database_directory.read_stored

    async def of_any(client: Client, name: str, meant: bytes | None = None) -> DatabaseEntry:
        return await read_stored(client, name)

    for module in (database_directory, dropping, placement_changes):
        patch(module, "read_stored", of_any)
