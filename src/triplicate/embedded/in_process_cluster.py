"""A cluster inside of one process: metadata, bookies and a client of them, on a network that nobody else reaches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.config import BookieSettings, ClientSettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs, LogSettings
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, Metrics

KIB = 1024
MIB = 1024 * KIB
HOST_NAME = "in-process"
"""The address of every bookie, on the network of the process."""


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """Sizes of a bookie in the process of an application."""

    journal_file_bytes: int = 16 * MIB
    journal_spare_files: int = 1
    journal_preallocate_bytes: int = MIB
    cache_bytes: int = 8 * MIB
    reserve_bytes: int = 8 * MIB
    disk_usage: float = 0.999
    """Used share of the disk above which it accepts no more changes."""

    def settings(self, name: str, directory: str) -> BookieSettings:
        """The settings of the bookie of this name, with its directories in `directory`."""
        return BookieSettings(
            bookie_id=name,
            host=HOST_NAME,
            port=0,
            journal_directories=(os.path.join(directory, "journal"),),
            ledger_directories=(os.path.join(directory, "ledgers"),),
            journal_file_bytes=self.journal_file_bytes,
            journal_spare_files=self.journal_spare_files,
            journal_preallocate_bytes=self.journal_preallocate_bytes,
            write_cache_bytes=self.cache_bytes,
            read_cache_bytes=self.cache_bytes,
            reserve_bytes=self.reserve_bytes,
            # The disk is the machine's, and not the bookie's alone: that it is nearly full is no reason to stop.
            disk_usage_warn_threshold=0.99,
            disk_usage_threshold=self.disk_usage,
            disk_usage_low_water=self.disk_usage,
            gc_interval_s=60.0,
        )


SIZES_OF_FOLDERS = ClusterSizes()
SIZES_OF_TESTS = ClusterSizes(MIB, 0, 64 * KIB, MIB, 0, 1.0)
REPAIR_TIMEOUT_S = 1.0
"""Time for which a writer waits for bookies, in seconds. All are in this process, and one that has failed does not come back."""


class InProcessCluster:
    """The parts of a cluster in this process. `open` makes one."""

    def __init__(self, host: Host, client: Client, logs: Logs, bookies: Sequence[Bookie], cleanup: AsyncExitStack) -> None:
        self.host = host
        self.client = client
        self.logs = logs
        self.bookies = tuple(bookies)
        self._cleanup = cleanup

    @classmethod
    async def open(
        cls,
        host: Host,
        metadata: ClusterMetadata,
        directories: Sequence[tuple[str, str]],
        sizes: ClusterSizes,
        client_settings: ClientSettings,
        log_settings: LogClientSettings,
        metrics: Metrics | None,
    ) -> InProcessCluster:
        """Start the bookies and a client.

        Args:
            host: its network is the process's own.
            metadata: the cluster's; closed by the caller after this.
            directories: the name and the directory of each bookie.

        Raises:
            ConfigError, EnvironmentFault, WrongCluster, CorruptionError, FormatError: a bookie does not start, and why.
        """
        async with AsyncExitStack() as opened:
            bookies: list[Bookie] = []
            for name, directory in directories:
                # The metrics of a bookie have no label for its name, and those of several would be added up.
                bookie = await Bookie.start(replace(host, name=name), sizes.settings(name, directory), metadata, None)
                opened.push_async_callback(bookie.stop)
                bookies.append(bookie)
            client = Client(host, metadata, client_settings, metrics)
            opened.push_async_callback(client.aclose)
            waits_s = min(log_settings.repair_timeout_s, REPAIR_TIMEOUT_S)
            return cls(host, client, Logs(client, replace(log_settings, repair_timeout_s=waits_s)), bookies, opened.pop_all())

    @property
    def log_settings(self) -> LogSettings:
        """Of a new log: a copy on each bookie, up to three, of which a majority is waited for."""
        copies = min(len(self.bookies), 3)
        return LogSettings(ensemble_size=copies, write_quorum=copies, ack_quorum=copies // 2 + 1)

    async def aclose(self) -> None:
        """Stop the client and the bookies. Idempotent."""
        await self._cleanup.aclose()
