"""``triplicate bookie``: one bookie process."""

from __future__ import annotations

from collections.abc import Mapping

import click

from triplicate.bookie import Bookie
from triplicate.cli.options import existing, load_configuration, settings_options
from triplicate.cli.running import Serving, serve_process
from triplicate.config import BookieSettings, MetadataSettings, ProcessSettings
from triplicate.errors import ConfigError
from triplicate.metadata import open_cluster
from triplicate.runtime import Host, Metrics, keep_freed_memory


@click.command()
@settings_options(BookieSettings, MetadataSettings, ProcessSettings)
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
def bookie(config: str | None, flags: Mapping[str, object], parent_pipe: int | None, ready_pipe: int | None) -> None:
    """Run one bookie until SIGTERM or Ctrl-C.

    Every option is also a key of the --config file and a variable TRIPLICATE_BOOKIE_...; docs/reference/settings.md explains each.
    """
    configuration = load_configuration((BookieSettings, MetadataSettings, ProcessSettings), config, flags)
    settings = configuration.get(BookieSettings)
    uri = configuration.get(MetadataSettings).uri
    if not uri:
        raise ConfigError("metadata.uri is not set: give --metadata sqlite:///… or zk://…, or put it into the --config file")

    keep_freed_memory()

    async def start(host: Host, metrics: Metrics) -> Serving:
        cluster = await open_cluster(existing(uri), host)
        server = Bookie(host, settings, cluster, metrics)
        try:
            await server.start()
        except BaseException:
            await cluster.aclose()
            raise

        async def stop() -> None:
            try:
                await server.stop()
            finally:
                await cluster.aclose()

        return Serving({"bookie": server.bookie_id, "address": "{}:{}".format(*server.address)}, stop, server.wait_failed)

    name = settings.bookie_id or "bookie"
    serve_process(name, configuration.get(ProcessSettings), start, parent_pipe=parent_pipe, ready_pipe=ready_pipe)
