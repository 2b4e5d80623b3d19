"""The databases that a node hosts, and how it finds them."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.metadata import own_paths
from triplicate.replica import HostedCopies
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, database_names, find_info
from triplicate.sql.hosting.dropping import is_dropped


class HostedDatabases(HostedCopies[SqlDatabase, DatabaseInfo]):
    """The hosted databases by name. Implements `interface.Databases` for servers."""


class DatabaseDirectory:
    """Implements `replica.ReplicaDirectory` for databases.

    Args:
        folder: the directory of this node.
    """

    kind = "database"

    def __init__(self, client: Client, folder: str) -> None:
        self._client = client
        self._folder = folder
        self.list_path = own_paths.databases_path(client.metadata.own_root)

    def entry_path(self, name: str) -> str:
        return own_paths.database_path(self._client.metadata.own_root, name)

    def copy_file(self, name: str) -> str:
        return str(database_file(self._folder, name))

    async def names(self) -> list[str]:
        return await database_names(self._client)

    async def read(self, name: str) -> DatabaseInfo | None:
        return await find_info(self._client, name)

    async def is_dropped(self, info: DatabaseInfo) -> bool:
        return await is_dropped(self._client, info.identity)
