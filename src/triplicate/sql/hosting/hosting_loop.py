"""Hosting the databases of the cluster's list that this node is chosen for, and no other."""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Callable, Sequence

from triplicate.errors import FormatError, SessionExpired, SqlError, TriplicateError
from triplicate.metadata import Watch, own_paths
from triplicate.replica import empty_folder, node_entry
from triplicate.runtime import Backoff, TaskScope, first_of, sleep
from triplicate.sql.hosting.copy_departure import CopyDepartures
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, database_names, read_info
from triplicate.sql.hosting.dropping import is_dropped
from triplicate.sql.hosting.hosted_database import HostedDatabase, NodeResources
from triplicate.sql.hosting.hosted_databases import HostedDatabases
from triplicate.sql.storage.local_copies import rename_copy

RETRY_FIRST_S = 0.05
RETRY_LONGEST_S = 2.0
DEPARTURE_CHECK_S = 0.5
"""Interval at which copies that are to be given up are looked at."""

DatabaseList = dict[str, DatabaseInfo | None]
"""The databases of a cluster by name, None for those that cannot be read."""


class HostingLoop:
    """Follows the list of databases and their placement, and runs a replica of each one that has a copy here.

    Args:
        watches: of the list and of the placement; begun before the list is read first.
        scope: for the tasks of the hosted databases.
    """

    def __init__(self, parts: NodeResources, databases: HostedDatabases, watches: Sequence[Watch], scope: TaskScope) -> None:
        self._parts = parts
        self._node = parts.node
        self._watches = watches
        self._departures = CopyDepartures(parts.node.client, parts.node.settings.node_id)
        self._without_copy: set[bytes] = set()
        """Identities of databases that have no copy in this node's directory."""
        self._given_up: set[bytes] = set()
        """Identities of databases whose copies this node has shown and given up."""
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
            await self._changed()
            await self._reconcile()

    async def _changed(self) -> None:
        """Return when something may have changed, or when it is time to look at the copies that are to be given up."""
        waits = [_changed(watch) for watch in self._watches]
        if not self._departures.is_empty:
            waits.append(sleep(self._node.host.clock, DEPARTURE_CHECK_S))
        await first_of(waits, name="databases")

    async def _reconcile(self) -> None:
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._node.host.entropy.stream("node.databases"))
        while not await self._try_reconcile():
            await sleep(self._node.host.clock, backoff.next_s())

    async def _try_reconcile(self) -> bool:
        """Host databases that are to have a copy here, and stop hosting the others; False when this must be tried again."""
        try:
            own = await node_entry(self._node.client, self._node.settings.node_id)
            infos = await self._infos(synced=False)
            if any(self._is_gone(hosted, infos) for hosted in self._databases.hosted.values()):
                # A database is given up only by a list that is not out of date.
                infos = await self._infos(synced=True)
                for hosted in self._databases.hosted.values():
                    if self._is_gone(hosted, infos):
                        await self._stop_hosting(hosted, infos)
            for hosted in self._databases.hosted.values():
                await self._review(hosted, infos, is_draining=own.is_draining)
        except SessionExpired:
            raise
        except TriplicateError as error:
            self._node.host.trace("node.waits_for_metadata", node=self._node.settings.node_id, error=str(error))
            return False
        for name, info in infos.items():
            if info is not None and name not in self._databases.hosted and await self._is_wanted(info, is_draining=own.is_draining):
                hosted = self._host_database(info)
                if not info.placement.assigns(self._node.settings.node_id, is_draining=own.is_draining):
                    self._departures.begin(hosted)
        self._databases.is_partial = not infos.keys() <= self._databases.hosted.keys()
        return None not in infos.values()

    async def _is_wanted(self, info: DatabaseInfo, *, is_draining: bool) -> bool:
        """Whether a database is to have a copy here, or has one that other nodes may still need."""
        if info.placement.assigns(self._node.settings.node_id, is_draining=is_draining):
            self._without_copy.discard(info.identity)
            return True
        if info.identity in self._without_copy:
            return False
        worker = self._node.host.new_worker(f"sql-{info.name}-copy")
        try:
            has_copy = await worker.run(self._node.host.disk.exists, self._path(info.name))
        finally:
            await worker.close()
        if not has_copy:
            self._without_copy.add(info.identity)
        return has_copy

    async def _review(self, hosted: HostedDatabase, infos: DatabaseList, *, is_draining: bool) -> None:
        """Give a copy up that is no longer expected here, once the others have reached it.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        info = infos.get(hosted.info.name) or hosted.info
        if info.placement.assigns(self._node.settings.node_id, is_draining=is_draining):
            self._departures.end(hosted)
            return
        self._departures.begin(hosted)
        if await self._departures.may_leave(hosted):
            await self._give_up(hosted)

    async def _give_up(self, hosted: HostedDatabase) -> None:
        """Stop hosting a database that other nodes host, and delete the copy."""
        await self._end(hosted)
        self._departures.end(hosted)
        self._given_up.add(hosted.info.identity)
        await self._change_files(hosted.info.name, empty_folder, hosted.folder)
        self._node.host.trace("node.copy_left", node=self._node.settings.node_id, database=hosted.info.name)

    def _path(self, name: str) -> str:
        return str(database_file(self._node.settings.directory, name))

    async def _end(self, hosted: HostedDatabase) -> None:
        """End the replica of a database."""
        self._databases.remove(hosted)
        task = self._tasks.pop(hosted.info.name)
        task.cancel()
        await asyncio.wait([task])

    async def _change_files(self, name: str, change: Callable[..., object], *paths: str) -> None:
        worker = self._node.host.new_worker(f"sql-{name}-gone")
        try:
            await worker.run(change, self._node.host.disk, *paths)
        except OSError as error:
            self._node.host.trace("node.copy_stays", node=self._node.settings.node_id, database=name, error=repr(error))
        finally:
            await worker.close()

    async def _infos(self, *, synced: bool) -> DatabaseList:
        """The databases as they are listed now."""
        metadata = self._node.client.metadata
        if synced:
            await metadata.tree.sync(own_paths.databases_path(metadata.own_root))
        infos: DatabaseList = {}
        for name in await database_names(self._node.client):
            try:
                infos[name] = await read_info(self._node.client, name)
            except SqlError:
                continue  # It was dropped since the list was read.
            except FormatError as error:
                # The others are hosted nevertheless.
                self._node.host.trace("node.database_not_hosted", node=self._node.settings.node_id, database=name, error=repr(error))
                infos[name] = None
        return infos

    def _is_gone(self, hosted: HostedDatabase, infos: DatabaseList) -> bool:
        name = hosted.info.name
        info = infos.get(name)
        return name not in infos or (info is not None and info.identity != hosted.info.identity)

    def _host_database(self, info: DatabaseInfo) -> HostedDatabase:
        hosted = HostedDatabase(self._parts, info, replaces_another=info.identity in self._given_up)
        self._databases.add(hosted)
        self._tasks[info.name] = self._scope.spawn(hosted.run(), name=f"database {info.name}")
        return hosted

    async def _stop_hosting(self, hosted: HostedDatabase, infos: DatabaseList) -> None:
        """Stop hosting a database. The copy is moved when the database was renamed, deleted when it was dropped, and kept otherwise.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        name, identity = hosted.info.name, hosted.info.identity
        dropped = await is_dropped(self._node.client, identity)
        names = [info.name for info in infos.values() if info is not None and info.identity == identity]
        await self._end(hosted)
        self._departures.end(hosted)
        self._node.host.trace("node.database_gone", node=self._node.settings.node_id, database=name, dropped=dropped, renamed=names)
        if names:
            await self._change_files(name, rename_copy, hosted.folder, os.path.dirname(self._path(names[0])))
        elif dropped:
            await self._change_files(name, empty_folder, hosted.folder)


async def _changed(watch: Watch) -> None:
    await watch.changed()
