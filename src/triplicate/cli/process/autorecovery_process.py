"""Auto-recovery in a server process: the daemon with the client and the logs that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from triplicate.autorecovery import AutorecoveryDaemon, LocalCopies, UnneededCopies
from triplicate.client import Client
from triplicate.config import AutorecoverySettings, ClientSettings, Configuration, SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs, has_living_writer, raise_all_copies
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, Metrics


@dataclass(frozen=True, slots=True)
class RunningAutorecovery:
    """The daemon, and the client that is its own."""

    daemon: AutorecoveryDaemon
    client: Client

    async def stop(self) -> None:
        """End the daemon, then its client."""
        try:
            await self.daemon.stop()
        finally:
            await self.client.aclose()


async def delete_unneeded_copies(
    host: Host, cluster: ClusterMetadata, configuration: Configuration, metrics: Metrics, bookie_id: str, storage: LocalCopies
) -> None:
    """Delete the copies of a bookie that no ledger needs any more, in rounds without end.

    Raises:
        OSError, CorruptionError: of the storage.
    """
    wait_s = configuration.get(AutorecoverySettings).unneeded_copies_wait_s
    security = configuration.get(SecuritySettings)
    async with Client(host, cluster, configuration.get(ClientSettings), metrics, security=security) as client:
        await UnneededCopies(client, bookie_id, storage, wait_s).run()


def start_autorecovery(
    host: Host, cluster: ClusterMetadata, configuration: Configuration, metrics: Metrics, name: str
) -> RunningAutorecovery:
    """Start auto-recovery on the session of a process.

    Args:
        configuration: with the sections of auto-recovery, clients, logs and security.
        name: the name in votes and locks; a bookie id.
    """
    client = Client(host, cluster, configuration.get(ClientSettings), metrics, security=configuration.get(SecuritySettings))
    logs = Logs(client, configuration.get(LogClientSettings))

    async def raise_copies() -> None:
        await raise_all_copies(logs)

    settings = configuration.get(AutorecoverySettings)
    writers = partial(has_living_writer, logs)
    return RunningAutorecovery(AutorecoveryDaemon(client, settings, name=name, has_living_writer=writers, chore=raise_copies), client)
