"""A database node: hosts a copy of every database of the cluster.

It waits while the metadata do not answer, and serves its open copies meanwhile. The failure of one database does not affect the others
(`hosted_database`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from triplicate.client import Client
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import FormatError, HandleClosed, SessionExpired, SqlError, TriplicateError
from triplicate.log import Janitor, Logs, maintain
from triplicate.metadata import Watch, own_paths
from triplicate.replica import FailureDetector, PeerLoss
from triplicate.runtime import Backoff, Host, Metrics, TaskScope, resolve, sleep
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.executor.threads import SharedThreads
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, database_names, read_info
from triplicate.sql.hosting.dropping import is_dropped, purge_dropped
from triplicate.sql.hosting.hosted_database import HostedDatabase, NodeResources
from triplicate.sql.hosting.node_registration import NodeDirectory, NodeRegistrar
from triplicate.sql.storage.local_copies import delete_copy, rename_copy
from triplicate.sql.storage.sqlite_file import ConnectionSetup

RETRY_FIRST_S = 0.05
RETRY_LONGEST_S = 2.0
PURGE_SHORTEST_S = 1.0
PURGE_LONGEST_S = 600.0
"""Bounds, in seconds, of the interval between two purges of dropped databases."""


class DatabaseNode:
    """Follows the list of databases and runs a replica of each. Implements `interface.Databases` for servers.

    Args:
        client: the cluster; not closed by the node.
        logs: its logs.
        setup: called on every new SQLite connection; the same on every node.
    """

    def __init__(
        self,
        host: Host,
        client: Client,
        logs: Logs,
        settings: NodeSettings,
        metrics: Metrics | None = None,
        setup: ConnectionSetup | None = None,
    ) -> None:
        self._host = host
        self._client = client
        self._logs = logs
        self._settings = settings
        self._metrics = metrics
        self._setup = setup
        self._directory = NodeDirectory(host, settings.directory)
        self._threads = SharedThreads(host, settings)
        self._name: NodeRegistrar | None = None
        self._hosted: dict[str, HostedDatabase] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The tasks of the hosted databases, by name."""
        self._beginning: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._failed_event: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._scope = TaskScope(f"node {settings.node_id}", on_failure=self._failed)

    @property
    def node_id(self) -> str:
        return self._settings.node_id

    @property
    def starting(self) -> bool:
        """Whether the node does not know all databases of the cluster yet. Those that it knows are served."""
        return self._beginning is None or not self._beginning.done()

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the node, such as the end of its metadata session. It must be started again."""
        return self._failure

    async def failed(self) -> BaseException:
        """Return when an error has ended the node, with the error; its process should end then."""
        return await asyncio.shield(self._failed_event)

    @property
    def hosted(self) -> dict[str, HostedDatabase]:
        """The hosted databases by name."""
        return dict(self._hosted)

    def get(self, name: str) -> SqlDatabase | None:
        hosted = self._hosted.get(name)
        return None if hosted is None else hosted.database

    def names(self) -> list[str]:
        return sorted(self._hosted)

    def positions(self) -> dict[str, int]:
        """The offset after the last record applied, by database."""
        return {name: hosted.database.position for name, hosted in sorted(self._hosted.items())}

    async def start(self, address: tuple[str, int] | None = None) -> None:
        """Open every local copy and begin to follow all databases, present and future. Returns when the copies are open, so that
        `positions` has their positions. Waits for the metadata without limit; `stop` ends the wait.

        Args:
            address: host and port of the PostgreSQL server. Other nodes give it to clients, unless a setting has another address.

        Raises:
            EnvironmentFault: the directory is used by another process, or cannot be used; or another node of this name runs.
        """
        shown = self._settings.advertised_address or ("{}:{}".format(*address) if address else "")
        beginning = self._beginning = self._scope.spawn(self._begin(shown), name="start")
        try:
            await beginning
        except asyncio.CancelledError:
            if self._scope.closing and self._failure is None:
                raise HandleClosed(f"node {self.node_id} was stopped while it started") from None
            raise

    async def _begin(self, address: str) -> None:
        identity = await self._lock_directory()
        metadata = self._client.metadata
        name = self._name = NodeRegistrar(self._host, metadata.tree, metadata.own_root, self.node_id, address, identity)
        await name.acquire(self._settings.name_wait_s)
        self._scope.spawn(name.keep(), name="name")
        parts = NodeResources(
            self._host,
            self._client,
            self._logs,
            self._settings,
            self._metrics,
            self._setup,
            address,
            lambda: name.held,
            asyncio.Lock(),
            self._threads,
            self._start_failure_detector(),
        )
        watch = metadata.tree.watch(own_paths.databases_path(metadata.own_root))
        backoff = self._backoff()
        while not await self._reconcile(parts):
            await sleep(self._host.clock, backoff.next_s())
        for hosted in list(self._hosted.values()):
            await hosted.opened
        self._scope.spawn(self._follow_list(parts, watch), name="databases")
        if self._logs.settings.janitor_interval_s > 0:
            self._scope.spawn(Janitor(self._logs, self._metrics, chores=(maintain,)).run(), name="janitor")
        self._scope.spawn(self._purge_dropped(), name="purge")

    def _start_failure_detector(self) -> Callable[[str], Coroutine[Any, Any, PeerLoss]] | None:
        if not self._settings.peer_probe_interval_s:
            return None
        peers = FailureDetector(self._host, self._settings.peer_probe_interval_s, self._settings.silent_leader_limit_s)
        self._scope.spawn(peers.run(), name="peers")
        return peers.gone

    async def _lock_directory(self) -> str:
        worker = self._host.new_worker("node-directory")
        try:
            return await worker.run(self._directory.open)
        finally:
            await worker.close()

    async def stop(self) -> None:
        """End all sessions and stop following. Idempotent."""
        try:
            await self._scope.aclose()
            for hosted in list(self._hosted.values()):
                await hosted.database.close()
            self._hosted.clear()
            await self._threads.close()
            if self._name is not None:
                await self._name.withdraw()
        finally:
            self._directory.close()

    def _failed(self, error: BaseException) -> None:
        self._failure = error
        resolve(self._failed_event, error)
        self._host.trace("node.failed", node=self.node_id, error=repr(error))

    async def _follow_list(self, parts: NodeResources, watch: Watch) -> None:
        backoff = self._backoff()
        try:
            while True:
                await watch.changed()
                while not await self._reconcile(parts):
                    await sleep(self._host.clock, backoff.next_s())
                backoff.reset()
        finally:
            watch.close()

    def _backoff(self) -> Backoff:
        return Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._host.entropy.stream("node.databases"))

    async def _reconcile(self, parts: NodeResources) -> bool:
        """Host new databases and stop hosting those that are gone; False when this must be tried again."""
        try:
            infos, complete = await self._infos(synced=False)
            if any(self._is_gone(hosted, infos) for hosted in self._hosted.values()):
                # A database is given up only by a list that is not out of date.
                infos, complete = await self._infos(synced=True)
                for hosted in list(self._hosted.values()):
                    if self._is_gone(hosted, infos):
                        await self._stop_hosting(hosted, infos)
        except SessionExpired:
            raise
        except TriplicateError as error:
            self._host.trace("node.waits_for_metadata", node=self.node_id, error=str(error))
            return False
        for name, info in infos.items():
            if info is not None and name not in self._hosted:
                self._host_database(parts, info)
        return complete

    async def _infos(self, *, synced: bool) -> tuple[dict[str, DatabaseInfo | None], bool]:
        """The databases by name, None for those that cannot be read; and whether all could be read."""
        metadata = self._client.metadata
        if synced:
            await metadata.tree.sync(own_paths.databases_path(metadata.own_root))
        infos: dict[str, DatabaseInfo | None] = {}
        for name in await database_names(self._client):
            try:
                infos[name] = await read_info(self._client, name)
            except SqlError:
                continue  # It was dropped since the list was read.
            except FormatError as error:
                # The others are hosted nevertheless.
                self._host.trace("node.database_not_hosted", node=self.node_id, database=name, error=repr(error))
                infos[name] = None
        return infos, None not in infos.values()

    def _is_gone(self, hosted: HostedDatabase, infos: dict[str, DatabaseInfo | None]) -> bool:
        name = hosted.info.name
        info = infos.get(name)
        return name not in infos or (info is not None and info.identity != hosted.info.identity)

    def _host_database(self, parts: NodeResources, info: DatabaseInfo) -> None:
        hosted = HostedDatabase(parts, info)
        self._hosted[info.name] = hosted
        self._tasks[info.name] = self._scope.spawn(hosted.run(), name=f"database {info.name}")

    async def _stop_hosting(self, hosted: HostedDatabase, infos: dict[str, DatabaseInfo | None]) -> None:
        """Stop hosting a database. The copy is moved when the database was renamed, deleted when it was dropped, and kept otherwise.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        name, identity = hosted.info.name, hosted.info.identity
        dropped = await is_dropped(self._client, identity)
        names = [info.name for info in infos.values() if info is not None and info.identity == identity]
        del self._hosted[name]
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait([task])
        self._host.trace("node.database_gone", node=self.node_id, database=name, dropped=dropped, renamed=names)
        worker = self._host.new_worker(f"sql-{name}-gone")
        path = str(database_file(self._settings.directory, name))
        try:
            if names:
                await worker.run(rename_copy, self._host.disk, path, str(database_file(self._settings.directory, names[0])))
            elif dropped:
                await worker.run(delete_copy, self._host.disk, path)
        except OSError as error:
            self._host.trace("node.copy_stays", node=self.node_id, database=name, error=repr(error))
        finally:
            await worker.close()

    async def _purge_dropped(self) -> None:
        """Delete the logs of databases that were dropped longer ago than the setting says."""
        keep_s = self._settings.dropped_keep_s
        interval_s = min(max(keep_s / 10, PURGE_SHORTEST_S), PURGE_LONGEST_S)
        while True:
            await sleep(self._host.clock, interval_s)
            try:
                for info in await purge_dropped(self._client, self._logs, keep_s):
                    self._host.trace("node.database_purged", node=self.node_id, database=info.name, log=info.log)
            except SessionExpired:
                raise
            except TriplicateError as error:
                self._host.trace("node.not_purged", node=self.node_id, error=repr(error))
