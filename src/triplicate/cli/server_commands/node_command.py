"""``triplicate node``: one database node, hosting every database of the cluster behind one PostgreSQL port."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

import click

from triplicate.cli.process.probes import ServedProcess, node_problems, node_readiness
from triplicate.cli.process.serving import serve_process, warn_of_open_files
from triplicate.cli.terminal.options import existing, load_configuration, settings_options
from triplicate.client import Client
from triplicate.config import ClientSettings, MetadataSettings, NodeSettings, ProcessSettings, SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConfigError, ConnectionLost, EnvironmentFault
from triplicate.log import Logs
from triplicate.metadata import ClusterMetadata, open_cluster
from triplicate.runtime import Backoff, Host, Metrics, sleep
from triplicate.sql import DatabaseNode, HostedDatabases, PostgresServer, ServerLimits

SECTIONS = (NodeSettings, MetadataSettings, ProcessSettings, ClientSettings, LogClientSettings, SecuritySettings)

WAIT_FIRST_S = 0.5
WAIT_LONGEST_S = 5.0


async def open_cluster_in_time(uri: str, host: Host, session_timeout_s: float) -> ClusterMetadata:
    """Open the cluster, and wait without limit for a metadata store that does not answer: this machine may start before it.

    Raises:
        ConfigError: the URI has no known form, or there is no cluster.
    """
    backoff = Backoff(WAIT_FIRST_S, WAIT_LONGEST_S, host.entropy.stream("node.metadata"))
    while True:
        try:
            return await open_cluster(uri, host, session_timeout_s=session_timeout_s)
        except ConnectionLost as error:
            host.trace("node.waits_for_metadata", error=str(error))
            await sleep(host.clock, backoff.next_s())


@click.command()
@settings_options(*SECTIONS)
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
def node(config: str | None, flags: Mapping[str, object], parent_pipe: int | None, ready_pipe: int | None) -> None:
    """Run a database node until SIGTERM or Ctrl-C.

    PostgreSQL clients connect to its port and name the database. Every node holds a copy of each database. One node leads a database and
    accepts its writes. A connection string that names all nodes with target_session_attrs=read-write finds it.
    """
    configuration = load_configuration(SECTIONS, config, flags)
    settings = configuration.get(NodeSettings)
    metadata = configuration.get(MetadataSettings)
    if not metadata.uri:
        raise ConfigError("metadata.uri is not set: give --metadata sqlite:///… or zk://…, or put it into the --config file")

    async def start(host: Host, metrics: Metrics) -> ServedProcess:
        warn_of_open_files(settings.connections, "node.connections")
        async with AsyncExitStack() as opened:
            cluster = await open_cluster_in_time(existing(metadata.uri), host, metadata.session_timeout_s)
            opened.push_async_callback(cluster.aclose)
            security = configuration.get(SecuritySettings)
            client = Client(host, cluster, configuration.get(ClientSettings), metrics, security=security)
            opened.push_async_callback(client.aclose)
            databases = HostedDatabases()
            limits = ServerLimits(settings.connections, settings.database_connections, client_stall_s=settings.client_stall_s)
            try:
                server = await PostgresServer.open(host, databases, (settings.host, settings.port), limits)
            except OSError as error:
                where = f"{settings.host}:{settings.port}"
                raise EnvironmentFault(f"{where} cannot be opened ({error.strerror}); choose another node.port") from None
            opened.push_async_callback(server.stop)
            logs = Logs(client, configuration.get(LogClientSettings))
            running = await DatabaseNode.start(host, client, logs, settings, databases, server.address, metrics=metrics)
            kept = opened.pop_all()

        async def stop() -> None:
            async with kept, AsyncExitStack() as first:
                first.push_async_callback(running.stop)
                first.push_async_callback(server.stop)

        address = "{}:{}".format(*server.address)
        facts: dict[str, object] = {"node": settings.node_id, "address": address, "positions": databases.positions()}
        return ServedProcess(facts, stop, running.failed, lambda: node_problems(running), lambda: node_readiness(running))

    serve_process(settings.node_id or "node", configuration.get(ProcessSettings), start, parent_pipe=parent_pipe, ready_pipe=ready_pipe)
