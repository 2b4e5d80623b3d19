"""``triplicate node``: one node, hosting databases of the cluster behind one PostgreSQL port, and key-value stores; commands on nodes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import chain

import click

from triplicate.cli.process.audit_log import configure_audit_log
from triplicate.cli.process.port_holders import reason_of
from triplicate.cli.process.probes import ServedProcess, node_problems, node_readiness
from triplicate.cli.process.serving import serve_process, warn_of_open_files
from triplicate.cli.terminal.lazy_subcommands import LazySubcommands
from triplicate.cli.terminal.options import load_configuration, metadata_access, settings_options
from triplicate.client import Client
from triplicate.config import (
    ClientSettings,
    Configuration,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    RespSettings,
    SecuritySettings,
    StoreSettings,
)
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConfigError, ConnectionLost, EnvironmentFault
from triplicate.kv import HostedStores, RespDoor
from triplicate.log import Logs
from triplicate.metadata import ClusterMetadata, MetadataAccess, open_cluster
from triplicate.runtime import Backoff, Host, Metrics, sleep
from triplicate.security import TlsIdentity, gaps_of_node, refuse_gaps, resp_gaps
from triplicate.sql import (
    DatabaseNode,
    HostedDatabases,
    PostgresServer,
    ServerLimits,
    ServerSecurity,
    limit_memory,
    login_secret,
    reserve_small_blocks,
)

SWITCH_INTERVAL_S = 0.0005
"""A thread that computes gives the interpreter to another after this time, a tenth of Python's default. While a long statement is read on
its thread, the event loop waits for this at each of a short statement's steps."""
WAIT_FIRST_S = 0.5
WAIT_LONGEST_S = 5.0
SECTIONS = (
    NodeSettings,
    StoreSettings,
    RespSettings,
    MetadataSettings,
    ProcessSettings,
    ClientSettings,
    LogClientSettings,
    SecuritySettings,
)


async def open_cluster_in_time(uri: str, host: Host, access: MetadataAccess) -> ClusterMetadata:
    """Open the cluster, and wait without limit for a metadata store that does not answer: this machine may start before it.

    Raises:
        ConfigError: the URI has no known form, or there is no cluster. AccessRefused: ZooKeeper refuses this process.
    """
    backoff = Backoff(WAIT_FIRST_S, WAIT_LONGEST_S, host.entropy.stream("node.metadata"))
    while True:
        try:
            return await open_cluster(uri, host, session_timeout_s=access.settings.session_timeout_s, access=access)
        except ConnectionLost as error:
            host.trace("node.waits_for_metadata", error=str(error))
            await sleep(host.clock, backoff.next_s())


HERE = "triplicate.cli.server_commands.node_placement"


@click.group(
    cls=LazySubcommands,
    invoke_without_command=True,
    places={
        "alter": f"{HERE}:alter",
        "drain": f"{HERE}:drain",
        "list": f"{HERE}:list_nodes",
        "remove": f"{HERE}:remove",
        "undrain": f"{HERE}:undrain",
    },
)
@settings_options(*SECTIONS)
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
@click.pass_context
def node(context: click.Context, config: str | None, flags: Mapping[str, object], parent_pipe: int | None, ready_pipe: int | None) -> None:
    """Run a database node, or list and drain the nodes of a cluster.

    Without a subcommand the node runs until SIGTERM or Ctrl-C. PostgreSQL clients connect to its port and name the database. Every node
    holds a copy of each database, unless the database has a number of copies. One node leads a database and accepts its writes. A
    connection string that names all nodes with target_session_attrs=read-write finds it. With resp.serve, clients of Redis connect to
    another port and use the key-value stores.
    """
    if context.invoked_subcommand is None:
        run_node(load_configuration(SECTIONS, config, flags), parent_pipe, ready_pipe)


def share_process(settings: NodeSettings) -> None:
    """Keep long statements from taking all memory and time of the process."""
    reserve_small_blocks()
    limit_memory(settings.sql_memory_bytes)
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def run_node(configuration: Configuration, parent_pipe: int | None, ready_pipe: int | None) -> None:
    configuration.require(("node.node_id",), ("node.directory",))
    settings = configuration.get(NodeSettings)
    metadata = configuration.get(MetadataSettings)
    if not metadata.uri:
        raise ConfigError("metadata.uri is not set: give --metadata sqlite:///… or zk://…, or put it into the --config file")
    process, own_security = configuration.get(ProcessSettings), configuration.get(SecuritySettings)
    resp = configuration.get(RespSettings)
    gaps = chain(gaps_of_node(settings, metadata, configuration.get(ClientSettings), process, own_security), resp_gaps(resp))
    refuse_gaps(own_security, gaps)

    async def start(host: Host, metrics: Metrics) -> ServedProcess:
        warn_of_open_files(settings.connections, "node.connections")
        configure_audit_log(settings.audit_log, settings.audit_log_bytes)
        share_process(settings)
        identity = TlsIdentity.open(own_security, host.clock, host.trace)
        ServerSecurity.of_settings(settings, identity, b"")  # Errors of the settings come before the wait for the metadata.
        resp_door = RespDoor(host, settings, resp, identity)
        async with AsyncExitStack() as opened:
            cluster = await open_cluster_in_time(metadata.uri, host, metadata_access(host, configuration))
            opened.push_async_callback(cluster.aclose)
            client = Client(host, cluster, configuration.get(ClientSettings), metrics, security=own_security)
            opened.push_async_callback(client.aclose)
            databases = HostedDatabases()
            security = ServerSecurity.of_settings(settings, identity, login_secret(client))
            place, limits = (settings.host, settings.port), ServerLimits.of_settings(settings)
            try:
                server = await PostgresServer.open(host, databases, place, limits, security=security, metrics=metrics)
            except OSError as error:
                where, reason = f"{settings.host}:{settings.port}", reason_of(error, settings.host, settings.port)
                raise EnvironmentFault(f"{where} cannot be opened ({reason}); choose another node.port") from None
            opened.push_async_callback(server.stop)
            logs = Logs(client, configuration.get(LogClientSettings))
            stores = HostedStores(configuration.get(StoreSettings))
            await resp_door.open(stores, metrics)
            opened.push_async_callback(resp_door.stop)
            resp_address = resp_door.advertised_address
            running = await DatabaseNode.start(
                host,
                client,
                logs,
                settings,
                databases,
                server.address,
                metrics=metrics,
                beside=lambda parts, scope: stores.host(replace(parts, resp_address=resp_address), scope),
            )
            kept = opened.pop_all()

        async def stop() -> None:
            async with kept, AsyncExitStack() as first:
                first.push_async_callback(running.stop)
                first.push_async_callback(server.stop)
                first.push_async_callback(resp_door.stop)

        address = "{}:{}".format(*server.address)
        facts: dict[str, object] = {"node": settings.node_id, "address": address, "positions": databases.positions(), **resp_door.facts()}
        return ServedProcess(facts, stop, running.failed, lambda: node_problems(running), lambda: node_readiness(running, stores))

    serve_process(settings.node_id or "node", process, start, security=own_security, parent_pipe=parent_pipe, ready_pipe=ready_pipe)
