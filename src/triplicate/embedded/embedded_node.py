"""A database node in the process of an application, with a cluster of its own or as a member of another one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from triplicate.client import Client, ClientSettings
from triplicate.config import (
    CONFIG_VARIABLE,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    RespSettings,
    SecuritySettings,
    StoreSettings,
    settings_of_environment,
)
from triplicate.config.log_settings import LogClientSettings
from triplicate.embedded.core.targets import MEMORY, FleetTarget, FolderTarget, MemoryTarget, Target
from triplicate.embedded.embedded_folder import EmbeddedFolder
from triplicate.embedded.embedded_stores import EmbeddedStores
from triplicate.embedded.in_process_cluster import SIZES_OF_FOLDERS, SIZES_OF_TESTS, InProcessCluster
from triplicate.embedded.temporary_folder import temporary_folder
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.log import Logs
from triplicate.metadata import MetadataAccess, open_cluster
from triplicate.runtime import Host, InProcessNetwork, Metrics, UnsyncedDisk
from triplicate.security import AUDIT_LOGGER, TlsIdentity, gaps_of_embedded_node, gaps_of_node, refuse_gaps, resp_gaps
from triplicate.sql import DatabaseNode, HostedDatabases, PostgresServer, ServerLimits, ServerSecurity, login_secret

Result = TypeVar("Result")

NODE_ID = "embedded"
MEMBERS_MAX = 16
"""Processes that may join one folder of `triplicate up` at a time without settings of their own."""
LOCAL_SETTINGS = NodeSettings(
    node_id=NODE_ID,
    # There is one candidate, and no peer to suspect.
    election_delay_s=0,
    peer_probe_interval_s=0,
    name_wait_s=5.0,
    retry_first_s=0.01,
    # The threads of the application share the database, and none of them is a stranger. SQLite's users expect no limits of this kind.
    transaction_idle_s=600.0,
    transaction_limit_s=3600.0,
    read_idle_s=86_400.0,
)
"""Of a node whose cluster is in this process."""
LOCAL_LEASE_S = 0.1
"""Lease of what it leads: each start after another leader waits for it, and no other node ever leads."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a node is embedded."""

    port: int | None = None
    """Of its PostgreSQL server; 0 for a free one. None: as the settings say in a cluster of other processes, and no server otherwise."""
    settings: NodeSettings | None = None
    client: ClientSettings = field(default_factory=ClientSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    metadata: MetadataSettings = field(default_factory=MetadataSettings)
    logs: LogClientSettings = field(default_factory=LogClientSettings)
    metrics: Metrics | None = None
    bookies: int = 1
    """In this process, for a database in memory."""
    stores: StoreSettings = field(default_factory=StoreSettings)
    resp: RespSettings = field(default_factory=RespSettings)
    """Of the port for clients of Redis, which is open from the first key-value store on."""


class EmbeddedNode:
    """A node that runs in this process. `open` makes one."""

    def __init__(
        self,
        client: Client,
        logs: Logs,
        node: DatabaseNode,
        stores: EmbeddedStores,
        address: tuple[str, int] | None,
        cluster: InProcessCluster | None,
        ca_file: str,
        cleanup: AsyncExitStack,
    ) -> None:
        self.client = client
        self.logs = logs
        self.node = node
        self.stores = stores
        self.address = address
        """Host and port of its PostgreSQL server; None without one."""
        self.cluster = cluster
        """Its own cluster in this process; None in a cluster of other processes."""
        self.ca_file = ca_file
        """The authorities that this process trusts; empty for none."""
        self._cleanup = cleanup

    @property
    def is_local(self) -> bool:
        """Whether the whole cluster is in this process."""
        return self.cluster is not None

    @property
    def failure(self) -> BaseException | None:
        """The error after which the node, or a bookie of its own cluster, works no more; it must be opened again. None where all work."""
        bookies = () if self.cluster is None else self.cluster.bookies
        return self.node.failure or next((bookie.parts.failure.error.result() for bookie in bookies if bookie.failed), None)

    @property
    def hindrance(self) -> str:
        """Why its own cluster accepts no changes now, if a full disk is the reason; empty otherwise."""
        bookies = () if self.cluster is None else self.cluster.bookies
        full = [bookie.settings.ledger_directories[0] for bookie in bookies if bookie.read_only]
        return f"the disk of {full[0]} is full" if full else ""

    def check_works(self, what: str) -> None:
        """
        Args:
            what: the database or the store of the caller, for the message.

        Raises:
            EnvironmentFault: the node works no more.
        """
        failure = self.failure
        if failure is not None:
            raise EnvironmentFault(f"{what} has failed: {failure}. Close it, and open it again when the cause is gone")

    @classmethod
    async def open(cls, host: Host, target: Target, options: NodeOptions) -> EmbeddedNode:
        """Start the node, and for a folder or the memory its cluster before. Returns when the copies of all databases are open.

        Raises:
            ConfigError: the settings contradict each other or the place, or a protection is missing that is required.
            EnvironmentFault: another process uses the folder, the port is in use, or a disk fails.
            WrongCluster, CorruptionError, FormatError: the folder was changed by something else, or by a later release.
        """
        async with AsyncExitStack() as opened:
            if isinstance(target, FleetTarget):
                return await _join(host, target.uri, options, opened)
            if isinstance(target, MemoryTarget):
                directory = opened.enter_context(temporary_folder())
                return await _open_local(replace(host, disk=UnsyncedDisk()), MEMORY, directory, options, opened)
            folder = EmbeddedFolder(host.disk, target.path)
            up = await _call(host, folder.up_cluster)
            if up is not None:
                return await _join_folder(host, target, up.metadata_uri, _with_client_file(options, up.client_file), opened)
            opened.callback(folder.close)
            await _call(host, folder.open)
            return await _open_local(host, folder.metadata_uri, target.path, replace(options, bookies=1), opened)

    async def aclose(self) -> None:
        """End all sessions, and stop the node and its cluster. Idempotent."""
        await self._cleanup.aclose()


async def _call(host: Host, function: Callable[[], Result]) -> Result:
    """Call a function that blocks."""
    worker = host.new_worker("embedded-folder")
    try:
        return await worker.run(function)
    finally:
        await worker.close()


async def _open_local(host: Host, uri: str, directory: str, options: NodeOptions, opened: AsyncExitStack) -> EmbeddedNode:
    metadata = await open_cluster(uri, host, create=True)
    opened.push_async_callback(metadata.aclose)
    sizes = SIZES_OF_TESTS if uri == MEMORY else SIZES_OF_FOLDERS
    bookies = [(name, os.path.join(directory, name)) for name in bookie_names(options.bookies)]
    inside = replace(host, network=InProcessNetwork())
    cluster = await InProcessCluster.open(inside, metadata, bookies, sizes, options.client, options.logs, options.metrics)
    opened.push_async_callback(cluster.aclose)
    settings = replace(options.settings or LOCAL_SETTINGS, node_id=NODE_ID, directory=os.path.join(directory, "node"))
    return await _start(host, cluster.client, cluster.logs, settings, options, opened, cluster)


def bookie_names(count: int) -> list[str]:
    """The names of the bookies of a cluster in one process. That of a folder has one, whose copy is the only one."""
    return ["bookie"] if count == 1 else [f"bookie-{number}" for number in range(1, count + 1)]


async def _join_folder(host: Host, target: FolderTarget, uri: str, options: NodeOptions, opened: AsyncExitStack) -> EmbeddedNode:
    """Join the cluster of a folder of `triplicate up`, under the first name that no other process has."""
    if options.settings is not None:
        return await _join(host, uri, options, opened)
    for number in range(1, MEMBERS_MAX + 1):
        node_id = f"{NODE_ID}-{number}"
        settings = NodeSettings(node_id=node_id, directory=os.path.join(target.path, node_id), name_wait_s=5.0)
        try:
            # Also against another process that is about to make the directory.
            opened.callback(await _call(host, partial(host.disk.lock, os.path.join(target.path, f"{node_id}.lock"))))
        except BlockingIOError:
            continue
        return await _join(host, uri, replace(options, settings=settings), opened, is_guest=True)
    raise EnvironmentFault(
        f"{target.path}: {MEMBERS_MAX} processes have joined its cluster; give this one settings=NodeSettings(…) of its own"
    )


def _with_client_file(options: NodeOptions, path: str) -> NodeOptions:
    """The options, with the security of a secured folder's clients where the caller has given none."""
    if not path:
        return options
    environment = {CONFIG_VARIABLE: path}
    default = NodeOptions()
    return replace(
        options,
        client=settings_of_environment(ClientSettings, environment) if options.client == default.client else options.client,
        security=settings_of_environment(SecuritySettings, environment) if options.security == default.security else options.security,
        metadata=settings_of_environment(MetadataSettings, environment) if options.metadata == default.metadata else options.metadata,
    )


async def _join(host: Host, uri: str, options: NodeOptions, opened: AsyncExitStack, *, is_guest: bool = False) -> EmbeddedNode:
    settings, security = options.settings, options.security
    if settings is None:
        raise ConfigError(
            f"a node that joins the cluster at {uri} has a name and a directory of its own: give "
            "settings=NodeSettings(node_id=…, directory=…)"
        )
    metadata = replace(options.metadata, uri=uri)
    refuse_gaps(security, chain(gaps_of_node(settings, metadata, options.client, ProcessSettings(), security), resp_gaps(options.resp)))
    access = MetadataAccess.of(metadata, security, host)
    cluster = await open_cluster(uri, host, session_timeout_s=metadata.session_timeout_s, access=access)
    opened.push_async_callback(cluster.aclose)
    client = Client(host, cluster, options.client, options.metrics, security=security)
    opened.push_async_callback(client.aclose)
    return await _start(host, client, Logs(client, options.logs), settings, options, opened, is_guest=is_guest)


async def _start(
    outside: Host,
    client: Client,
    logs: Logs,
    settings: NodeSettings,
    options: NodeOptions,
    opened: AsyncExitStack,
    cluster: InProcessCluster | None = None,
    *,
    is_guest: bool = False,
) -> EmbeddedNode:
    """Start the node. In a cluster of other processes it always listens: their clients must reach it while it leads.

    Args:
        outside: has the network of the machine, for clients of PostgreSQL and Redis.
    """
    databases = HostedDatabases()
    stores = _stores(outside, settings, options)
    server = None
    if cluster is None or options.port is not None:
        port = settings.port if options.port is None else options.port
        server = await _listen(outside, client, replace(settings, port=port), options, databases)
        opened.push_async_callback(server.stop)
    address = server.address if server is not None else None
    node = await DatabaseNode.start(
        client.host, client, logs, settings, databases, address, metrics=options.metrics, beside=stores.begin, is_guest=is_guest
    )
    opened.push_async_callback(node.stop)
    opened.push_async_callback(stores.aclose)
    if server is not None:
        # Before the node: its clients learn that it ends, and those of its own process after them.
        opened.push_async_callback(server.stop)
    return EmbeddedNode(client, logs, node, stores, address, cluster, options.security.ca_file, opened.pop_all())


def _stores(outside: Host, settings: NodeSettings, options: NodeOptions) -> EmbeddedStores:
    """The key-value stores, whose port has the same demands as that of PostgreSQL."""
    identity = None
    if options.resp.serve:
        _check_door(settings, options.security, resp_gaps(options.resp))
        identity = TlsIdentity.open(options.security, outside.clock, outside.trace)
    return EmbeddedStores(outside, settings, options.stores, options.resp, identity, options.metrics)


def _check_door(settings: NodeSettings, security: SecuritySettings, further_gaps: Iterable[str] = ()) -> None:
    """Raises ConfigError: a port is to be open, and lacks a protection that is required, or writes a file that is not a program's."""
    refuse_gaps(security, chain(gaps_of_embedded_node(settings, security), further_gaps))
    if settings.audit_log:
        raise ConfigError(
            f"node.audit_log is for processes of their own: this program has the audit log as the logger {AUDIT_LOGGER}, give it a handler"
        )


async def _listen(host: Host, client: Client, settings: NodeSettings, options: NodeOptions, databases: HostedDatabases) -> PostgresServer:
    security = options.security
    _check_door(settings, security)
    identity = TlsIdentity.open(security, host.clock, host.trace)
    demands = ServerSecurity.of_settings(settings, identity, login_secret(client))
    try:
        place, limits = (settings.host, settings.port), ServerLimits.of_settings(settings)
        return await PostgresServer.open(host, databases, place, limits, security=demands, metrics=options.metrics)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise EnvironmentFault(f"{where} cannot be opened ({error.strerror}); choose another port") from None
