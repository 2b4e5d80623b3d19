"""``triplicate autorecovery``: the daemon of auto-recovery in a process of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

import click

from triplicate.cli.process.autorecovery_process import start_autorecovery
from triplicate.cli.process.probes import Readiness, ServedProcess, autorecovery_problems
from triplicate.cli.process.serving import serve_process
from triplicate.cli.terminal.options import load_configuration, metadata_access, settings_options
from triplicate.config import AutorecoverySettings, ClientSettings, MetadataSettings, ProcessSettings, SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConfigError
from triplicate.metadata import open_cluster
from triplicate.runtime import Host, Metrics
from triplicate.security import gaps_of_autorecovery, refuse_gaps

SECTIONS = (AutorecoverySettings, MetadataSettings, ProcessSettings, ClientSettings, LogClientSettings, SecuritySettings)

WATCH_INTERVAL_S = 0.5
"""How late the daemon's watches may be, against delays of seconds."""


@click.command()
@settings_options(*SECTIONS)
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
def autorecovery(config: str | None, flags: Mapping[str, object], parent_pipe: int | None, ready_pipe: int | None) -> None:
    """Find ledgers that lack copies and make the copies again, until SIGTERM or Ctrl-C.

    Any number of these processes run beside each other and beside those of Apache BookKeeper: one is elected as auditor, and all repair.
    Bookies of `triplicate up` run the same in their own processes (`autorecovery.in_bookie`).
    """
    configuration = load_configuration(SECTIONS, config, flags)
    metadata = configuration.get(MetadataSettings)
    if not metadata.uri:
        raise ConfigError("metadata.uri is not set: give --metadata sqlite:///… or zk://…, or put it into the --config file")
    process, security = configuration.get(ProcessSettings), configuration.get(SecuritySettings)
    refuse_gaps(security, gaps_of_autorecovery(metadata, configuration.get(ClientSettings), process, security))

    async def start(host: Host, metrics: Metrics) -> ServedProcess:
        uri, timeout_s = metadata.uri, metadata.session_timeout_s
        access = metadata_access(host, configuration)
        cluster = await open_cluster(uri, host, session_timeout_s=timeout_s, watch_interval_s=WATCH_INTERVAL_S, access=access)
        name = f"{socket.gethostname()}:{os.getpid()}"
        running = start_autorecovery(host, cluster, configuration, metrics, name)

        async def stop() -> None:
            try:
                await running.stop()
            finally:
                await cluster.aclose()

        def problems() -> list[str]:
            return autorecovery_problems(running.daemon)

        return ServedProcess({"autorecovery": name}, stop, running.daemon.wait_failed, problems, lambda: Readiness(problems()))

    serve_process("autorecovery", process, start, security=security, parent_pipe=parent_pipe, ready_pipe=ready_pipe)
