"""The task that deletes unneeded copies connects to bookies without the certificates of its process."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import LocalCopies, UnneededCopies
from triplicate.cli.process import autorecovery_process
from triplicate.client import Client
from triplicate.config import AutorecoverySettings, ClientSettings, Configuration
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, Metrics

TESTS = [
    "tests/unit/cli/process/test_autorecovery_process.py::test_unneeded_copies_are_deleted_where_bookies_require_tls",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def delete(
        host: Host,
        cluster: ClusterMetadata,
        configuration: Configuration,
        metrics: Metrics,
        bookie_id: str,
        storage: LocalCopies,
    ) -> None:
        async with Client(host, cluster, configuration.get(ClientSettings), metrics) as client:
            wait_s = configuration.get(AutorecoverySettings).unneeded_copies_wait_s
            await UnneededCopies(client, bookie_id, storage, wait_s).run()

    patch(autorecovery_process, "delete_unneeded_copies", delete)
