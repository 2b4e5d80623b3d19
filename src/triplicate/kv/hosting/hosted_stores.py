"""The key-value stores that a node hosts: every store of the cluster's list, and no other."""

from __future__ import annotations

import asyncio
from functools import partial

from triplicate.config import StoreSettings
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.hosted_store import HostedStore
from triplicate.kv.hosting.store_directory import StoreDirectory, StoreInfo
from triplicate.kv.hosting.store_leaders import move_leaders_away
from triplicate.metadata import own_paths
from triplicate.replica import HostedCopies, HostingLoop, NodeParts
from triplicate.runtime import TaskScope, resolve


class HostedStores(HostedCopies[ReplicatedStore, StoreInfo]):
    """The hosted stores by name. Implements `store_interface.KeyValueStores` for servers; `host` follows the list of stores."""

    def __init__(self, settings: StoreSettings | None = None) -> None:
        super().__init__()
        self._settings = settings or StoreSettings()

    async def host(self, parts: NodeParts, scope: TaskScope) -> None:
        """Host every store of the list, and follow the list in a task. Returns when the copies are open.

        Args:
            scope: for the tasks. At its end, all stores are closed.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        scope.spawn(self._host(parts, opened), name="stores")
        await opened

    async def _host(self, parts: NodeParts, opened: asyncio.Future[None]) -> None:
        metadata, directory = parts.client.metadata, StoreDirectory(parts.client, parts.settings.directory)
        watches = [metadata.tree.watch(path) for path in (directory.list_path, own_paths.placement_path(metadata.own_root))]
        try:
            async with TaskScope(f"stores of {parts.settings.node_id}") as scope:
                loop = HostingLoop(parts, directory, self, partial(HostedStore, parts, self._settings, directory), watches, scope)
                await loop.open_all()
                self.complete()
                resolve(opened, None)
                scope.spawn(move_leaders_away(parts, self), name="leaders")
                await loop.run()
        finally:
            opened.cancel()
            for watch in watches:
                watch.close()
            await self.aclose()
