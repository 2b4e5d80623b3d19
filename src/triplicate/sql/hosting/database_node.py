"""A database node: hosts copies of the databases that it is chosen for, by default of every database of the cluster.

It waits while the metadata do not answer, and serves its open copies meanwhile. The failure of one database does not affect the others
(`hosted_database`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from triplicate.client import Client
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SessionExpired, TriplicateError
from triplicate.log import Janitor, Logs, maintain
from triplicate.metadata import Watch, own_paths
from triplicate.replica import FailureDetector, HostingLoop, NodeDirectory, NodeParts, NodeRegistrar, PeerLoss, ensure_node_entry
from triplicate.runtime import Backoff, Host, Metrics, TaskScope, resolve, sleep
from triplicate.sql.backup.past_databases import PastDatabases
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.executor.threads import SharedThreads
from triplicate.sql.hosting.balancer import Balancer
from triplicate.sql.hosting.database_directory import DatabaseInfo
from triplicate.sql.hosting.dropping import purge_dropped
from triplicate.sql.hosting.hosted_database import HostedDatabase, NodeResources
from triplicate.sql.hosting.hosted_databases import DatabaseDirectory, HostedDatabases
from triplicate.sql.storage.sqlite_file import ConnectionSetup

PURGE_SHORTEST_S = 1.0
PURGE_LONGEST_S = 600.0
"""Bounds, in seconds, of the interval between two purges of dropped databases."""
ENTRY_FIRST_S = 0.1
ENTRY_LONGEST_S = 2.0
"""Bounds, in seconds, of the pause before the node's entry is written again after an error."""

DatabaseLoop = HostingLoop[SqlDatabase, DatabaseInfo]


class NodeFailure:
    """The first error after which a node can no longer serve, such as the end of its metadata session."""

    def __init__(self, host: Host, node_id: str) -> None:
        self.error: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._host = host
        self._node_id = node_id

    def fail(self, error: BaseException) -> None:
        """Record the error. Has no effect after the first."""
        resolve(self.error, error)
        self._host.trace("node.failed", node=self._node_id, error=repr(error))


class DatabaseNode:
    """A node that runs: it follows the list of databases and runs a replica of each. `start` makes one.

    Args:
        databases: the databases that it hosts.
        cleanup: releases everything that the node holds, the last acquired first.
    """

    def __init__(self, node_id: str, databases: HostedDatabases, failure: NodeFailure, cleanup: AsyncExitStack) -> None:
        self.node_id = node_id
        self.databases = databases
        self._failure = failure
        self._cleanup = cleanup

    @classmethod
    async def start(
        cls,
        host: Host,
        client: Client,
        logs: Logs,
        settings: NodeSettings,
        databases: HostedDatabases,
        address: tuple[str, int] | None = None,
        *,
        metrics: Metrics | None = None,
        setup: ConnectionSetup | None = None,
        beside: Callable[[NodeParts, TaskScope], Coroutine[Any, Any, None]] | None = None,
        is_guest: bool = False,
    ) -> DatabaseNode:
        """Open every local copy and begin to follow all databases, present and future. Returns when the copies are open, so that
        `HostedDatabases.positions` has their positions. Waits for the metadata without limit; a cancellation ends the wait.

        Args:
            client: the cluster; not closed by the node.
            logs: its logs.
            databases: serves the databases from their opening on, also during the start.
            address: host and port of the PostgreSQL server. Other nodes give it to clients, unless a setting has another address.
            setup: called on every new SQLite connection; the same on every node.
            beside: hosts other replicas in the scope, with the node's name and failure detector. It is awaited after the copies are open.
            is_guest: see `NodeEntry`; it counts at the node's first start.

        Raises:
            EnvironmentFault: the directory is used by another process, or cannot be used; or another node of this name runs.
            SessionExpired: the metadata session has ended for good.
        """
        failure = NodeFailure(host, settings.node_id)
        async with AsyncExitStack() as opened:
            directory = NodeDirectory(host, settings.directory)
            opened.callback(directory.close)
            shown = settings.advertised_address or ("{}:{}".format(*address) if address else "")
            identity = await _lock(host, directory)
            root, has_tls = client.metadata.own_root, settings.tls != "off"
            name = NodeRegistrar(host, client.metadata.tree, root, settings.node_id, shown, identity, has_tls=has_tls)
            opened.push_async_callback(name.withdraw)
            await name.acquire(settings.name_wait_s)
            threads = SharedThreads(host, settings)
            opened.push_async_callback(threads.close)
            past = PastDatabases(host, logs, settings, setup, threads)
            await past.begin()
            opened.push_async_callback(past.close)
            await _write_entry(host, client, settings, is_guest=is_guest)
            watches = [client.metadata.tree.watch(path) for path in (own_paths.databases_path(root), own_paths.placement_path(root))]
            for watch in watches:
                opened.callback(watch.close)
            opened.push_async_callback(databases.aclose)
            scope = TaskScope(f"node {settings.node_id}", on_failure=failure.fail)
            opened.push_async_callback(scope.aclose)
            scope.spawn(name.keep(), name="name")
            gone = _start_failure_detector(host, settings, scope)
            turn = asyncio.Lock()
            parts = NodeParts(host, client, logs, settings, metrics, shown, lambda: name.held, turn, gone)
            loop = _hosting_loop(NodeResources(parts, setup, threads, past), databases, watches, scope)
            await _open_in(scope, _open_databases(loop, parts, databases, scope))
            if beside is not None:
                await _open_in(scope, beside(parts, scope))
            return cls(settings.node_id, databases, failure, opened.pop_all())

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the node, such as the end of its metadata session. It must be started again."""
        return self._failure.error.result() if self._failure.error.done() else None

    async def failed(self) -> BaseException:
        """Return when an error has ended the node, with the error; its process should end then."""
        return await asyncio.shield(self._failure.error)

    async def stop(self) -> None:
        """End all sessions and stop following. Idempotent."""
        await self._cleanup.aclose()


async def _open_in(scope: TaskScope, opening: Coroutine[Any, Any, None]) -> None:
    """Wait for an opening in the scope. Raises the error that ended the scope meanwhile."""
    try:
        await scope.spawn(opening, name="start")
    except asyncio.CancelledError:
        if scope.failure is not None:
            raise scope.failure from None
        raise


def _hosting_loop(parts: NodeResources, databases: HostedDatabases, watches: Sequence[Watch], scope: TaskScope) -> DatabaseLoop:
    node = parts.node
    directory = DatabaseDirectory(node.client, node.settings.directory)
    return HostingLoop(node, directory, databases, partial(HostedDatabase, parts, directory), watches, scope)


async def _open_databases(loop: DatabaseLoop, parts: NodeParts, databases: HostedDatabases, scope: TaskScope) -> None:
    """Open every copy, and start the tasks that run until the end of the node."""
    await loop.open_all()
    scope.spawn(loop.run(), name="databases")
    if parts.logs.settings.janitor_interval_s > 0:
        scope.spawn(Janitor(parts.logs, parts.metrics, chores=(maintain,)).run(), name="janitor")
    scope.spawn(_purge_dropped(parts), name="purge")
    if parts.settings.balance_interval_s > 0:
        scope.spawn(Balancer(parts.host, parts.client, parts.settings, parts.metrics).run(), name="balancer")
    databases.complete()


def _start_failure_detector(host: Host, settings: NodeSettings, scope: TaskScope) -> Callable[[str], Coroutine[Any, Any, PeerLoss]] | None:
    if not settings.peer_probe_interval_s:
        return None
    peers = FailureDetector(host, settings.peer_probe_interval_s, settings.silent_leader_limit_s)
    scope.spawn(peers.run(), name="peers")
    return peers.gone


async def _write_entry(host: Host, client: Client, settings: NodeSettings, *, is_guest: bool) -> None:
    """Write the node's entry, if it has none. Waits for the metadata without limit."""
    backoff = Backoff(ENTRY_FIRST_S, ENTRY_LONGEST_S, host.entropy.stream("node.entry"))
    while True:
        try:
            return await ensure_node_entry(client, settings.node_id, is_guest=is_guest)
        except SessionExpired:
            raise
        except TriplicateError as error:
            host.trace("node.waits_for_metadata", node=settings.node_id, error=str(error))
            await sleep(host.clock, backoff.next_s())


async def _lock(host: Host, directory: NodeDirectory) -> str:
    worker = host.new_worker("node-directory")
    try:
        return await worker.run(directory.open)
    finally:
        await worker.close()


async def _purge_dropped(parts: NodeParts) -> None:
    """Delete the logs of databases that were dropped longer ago than the setting says."""
    keep_s = parts.settings.dropped_keep_s
    interval_s = min(max(keep_s / 10, PURGE_SHORTEST_S), PURGE_LONGEST_S)
    while True:
        await sleep(parts.host.clock, interval_s)
        try:
            for info in await purge_dropped(parts.client, parts.logs, keep_s):
                parts.host.trace("node.database_purged", node=parts.settings.node_id, database=info.name, log=info.log)
        except SessionExpired:
            raise
        except TriplicateError as error:
            parts.host.trace("node.not_purged", node=parts.settings.node_id, error=repr(error))
