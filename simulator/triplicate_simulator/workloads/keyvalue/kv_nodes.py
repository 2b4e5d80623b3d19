"""Nodes with a key-value store in a simulated cluster: the real code, over copies in temporary files of the machine that simulates.

As with databases, a power failure removes the copy. Where only the process was killed, the copy is as its last write left it: RocksDB has
handed each write to the operating system.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from triplicate.config import NodeSettings, StoreSettings
from triplicate.kv import HostedStores, ReplicatedStore
from triplicate.kv.storage.rocks_copy import RocksCopy, open_copies
from triplicate.log import LogClientSettings
from triplicate.replica import NodeParts, Role
from triplicate.runtime import TaskScope
from triplicate.sim.host import NodeDied
from triplicate_simulator.cluster.simulated_cluster import SimulatedCluster
from triplicate_simulator.workloads.sql.sql_nodes import CopyFolders, DatabaseServer

Result = TypeVar("Result")

STORE = "basket"
"""Name of the store."""


def copies_below(folder: Path) -> list[RocksCopy]:
    """The open copies below a folder."""
    prefix = f"{folder}{os.sep}"
    return [copy for copy in open_copies() if copy.path.startswith(prefix)]


class StoreServer(DatabaseServer):
    """A process with a node that hosts the store, over all its lives."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        name: str,
        copies: CopyFolders,
        settings: NodeSettings,
        log_settings: LogClientSettings,
        store_settings: StoreSettings,
    ) -> None:
        super().__init__(cluster, name, copies, settings, log_settings)
        self.stores: HostedStores | None = None
        self._store_settings = store_settings

    @property
    def server(self) -> StoreServer:
        return self

    @property
    def store(self) -> ReplicatedStore | None:
        """The store on this node, once it is hosted."""
        return None if self.stores is None or not self.alive or self.databases is None else self.stores.get(STORE)

    @property
    def leads(self) -> bool:
        store = self.store
        return store is not None and store.is_leader

    @property
    def leading_epoch(self) -> int:
        store = self.store
        return 0 if store is None or store.leadership is None else store.leadership.epoch

    @property
    def diverged(self) -> str | None:
        hosted = self.stores.hosted.get(STORE) if self.stores is not None else None
        return hosted.replica.reason if hosted is not None and hosted.role is Role.DIVERGED else None

    def _beside(self) -> Callable[[NodeParts, TaskScope], Coroutine[Any, Any, None]]:
        self.stores = HostedStores(self._store_settings)
        return self.stores.host

    async def call_store(self, work: Callable[[ReplicatedStore], Awaitable[Result]]) -> Result:
        """Run a function with the store, as part of the node's process.

        Raises:
            NodeDied: the process has ended, or ends before this is done.
        """
        host, store = self.host, self.store
        if host is None or store is None:
            raise NodeDied(self.name)

        async def run() -> Result:
            return await work(store)

        return await host.call(run(), name="client of the store")

    def crash(self, *, silent: bool = False, keep_unsynced: bool = False) -> None:
        if self.alive:
            # RocksDB's threads belong to this process: they must not change the files while they are copied.
            for copy in copies_below(self.folder):
                copy.close()
        super().crash(silent=silent, keep_unsynced=keep_unsynced)
