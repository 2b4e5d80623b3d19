"""Hosting every database of the cluster's list, and no other."""

from __future__ import annotations

import asyncio

from triplicate.errors import FormatError, SessionExpired, SqlError, TriplicateError
from triplicate.metadata import Watch, own_paths
from triplicate.runtime import Backoff, TaskScope, sleep
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, database_names, read_info
from triplicate.sql.hosting.dropping import is_dropped
from triplicate.sql.hosting.hosted_database import HostedDatabase, NodeResources
from triplicate.sql.hosting.hosted_databases import HostedDatabases
from triplicate.sql.storage.local_copies import delete_copy, rename_copy

RETRY_FIRST_S = 0.05
RETRY_LONGEST_S = 2.0

DatabaseList = dict[str, DatabaseInfo | None]
"""The databases of a cluster by name, None for those that cannot be read."""


class HostingLoop:
    """Follows the list of databases, and runs a replica of each.

    Args:
        watch: of the list; begun before the list is read first.
        scope: for the tasks of the hosted databases.
    """

    def __init__(self, parts: NodeResources, databases: HostedDatabases, watch: Watch, scope: TaskScope) -> None:
        self._parts = parts
        self._watch = watch
        self._databases = databases
        self._scope = scope
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The tasks of the hosted databases, by name."""

    async def open_all(self) -> None:
        """Host every database of the list. Returns when their copies are open; waits for the metadata without limit."""
        await self._reconcile()
        for hosted in self._databases.hosted.values():
            await hosted.opened

    async def run(self) -> None:
        """Follow the list until cancelled."""
        while True:
            await self._watch.changed()
            await self._reconcile()

    async def _reconcile(self) -> None:
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._parts.host.entropy.stream("node.databases"))
        while not await self._try_reconcile():
            await sleep(self._parts.host.clock, backoff.next_s())

    async def _try_reconcile(self) -> bool:
        """Host new databases and stop hosting those that are gone; False when this must be tried again."""
        try:
            infos = await self._infos(synced=False)
            if any(self._is_gone(hosted, infos) for hosted in self._databases.hosted.values()):
                # A database is given up only by a list that is not out of date.
                infos = await self._infos(synced=True)
                for hosted in self._databases.hosted.values():
                    if self._is_gone(hosted, infos):
                        await self._stop_hosting(hosted, infos)
        except SessionExpired:
            raise
        except TriplicateError as error:
            self._parts.host.trace("node.waits_for_metadata", node=self._parts.settings.node_id, error=str(error))
            return False
        for name, info in infos.items():
            if info is not None and name not in self._databases.hosted:
                self._host_database(info)
        return None not in infos.values()

    async def _infos(self, *, synced: bool) -> DatabaseList:
        """The databases as they are listed now."""
        metadata = self._parts.client.metadata
        if synced:
            await metadata.tree.sync(own_paths.databases_path(metadata.own_root))
        infos: DatabaseList = {}
        for name in await database_names(self._parts.client):
            try:
                infos[name] = await read_info(self._parts.client, name)
            except SqlError:
                continue  # It was dropped since the list was read.
            except FormatError as error:
                # The others are hosted nevertheless.
                self._parts.host.trace("node.database_not_hosted", node=self._parts.settings.node_id, database=name, error=repr(error))
                infos[name] = None
        return infos

    def _is_gone(self, hosted: HostedDatabase, infos: DatabaseList) -> bool:
        name = hosted.info.name
        info = infos.get(name)
        return name not in infos or (info is not None and info.identity != hosted.info.identity)

    def _host_database(self, info: DatabaseInfo) -> None:
        hosted = HostedDatabase(self._parts, info)
        self._databases.add(hosted)
        self._tasks[info.name] = self._scope.spawn(hosted.run(), name=f"database {info.name}")

    async def _stop_hosting(self, hosted: HostedDatabase, infos: DatabaseList) -> None:
        """Stop hosting a database. The copy is moved when the database was renamed, deleted when it was dropped, and kept otherwise.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        name, identity = hosted.info.name, hosted.info.identity
        dropped = await is_dropped(self._parts.client, identity)
        names = [info.name for info in infos.values() if info is not None and info.identity == identity]
        self._databases.remove(hosted)
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait([task])
        self._parts.host.trace("node.database_gone", node=self._parts.settings.node_id, database=name, dropped=dropped, renamed=names)
        worker = self._parts.host.new_worker(f"sql-{name}-gone")
        path = str(database_file(self._parts.settings.directory, name))
        try:
            if names:
                await worker.run(rename_copy, self._parts.host.disk, path, str(database_file(self._parts.settings.directory, names[0])))
            elif dropped:
                await worker.run(delete_copy, self._parts.host.disk, path)
        except OSError as error:
            self._parts.host.trace("node.copy_stays", node=self._parts.settings.node_id, database=name, error=repr(error))
        finally:
            await worker.close()
