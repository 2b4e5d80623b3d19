"""The key-value stores that a node hosts: every store of the cluster's list, and no other."""

from __future__ import annotations

import asyncio

from triplicate.config import StoreSettings
from triplicate.errors import FormatError, NoSuchStore, SessionExpired, TriplicateError
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.hosted_store import HostedStore
from triplicate.kv.hosting.store_directory import StoreInfo, read_store, store_names
from triplicate.metadata import own_paths
from triplicate.replica import NodeParts, empty_folder
from triplicate.runtime import Backoff, TaskScope, first_of, resolve, sleep

RETRY_FIRST_S = 0.05
RETRY_LONGEST_S = 2.0

StoreList = dict[str, StoreInfo | None]
"""The stores of a cluster by name, None for those that cannot be read."""


class HostedStores:
    """The hosted stores by name. Implements `store_interface.KeyValueStores` for servers; `host` follows the list of stores."""

    def __init__(self, settings: StoreSettings | None = None) -> None:
        self._settings = settings or StoreSettings()
        self._is_complete = False
        self._hosted: dict[str, HostedStore] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dropped = asyncio.Event()

    @property
    def starting(self) -> bool:
        """Whether the node does not know all stores of the cluster yet. Those that it knows are served."""
        return not self._is_complete

    def get(self, name: str) -> ReplicatedStore | None:
        hosted = self._hosted.get(name)
        return None if hosted is None else hosted.store

    def names(self) -> list[str]:
        return sorted(self._hosted)

    @property
    def hosted(self) -> dict[str, HostedStore]:
        """The hosted stores by name; a copy."""
        return dict(self._hosted)

    def positions(self) -> dict[str, int]:
        """The offset after the last record applied, by store."""
        return {name: hosted.store.position for name, hosted in sorted(self._hosted.items())}

    async def host(self, parts: NodeParts, scope: TaskScope) -> None:
        """Host every store of the list, and follow the list in a task. Returns when the copies are open.

        Args:
            scope: for the tasks. At its end, all stores are closed.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        scope.spawn(self._follow_list(parts, opened), name="stores")
        await opened

    async def _follow_list(self, parts: NodeParts, opened: asyncio.Future[None]) -> None:
        watch = parts.client.metadata.tree.watch(own_paths.stores_path(parts.client.metadata.own_root))
        try:
            async with TaskScope(f"stores of {parts.settings.node_id}") as scope:
                await self._reconcile(parts, scope)
                for hosted in self.hosted.values():
                    await hosted.opened
                self._is_complete = True
                resolve(opened, None)
                while True:
                    await first_of([watch.changed(), self._dropped.wait()], name="stores")
                    self._dropped.clear()
                    await self._reconcile(parts, scope)
        finally:
            opened.cancel()
            watch.close()
            self._hosted.clear()
            self._tasks.clear()

    async def _reconcile(self, parts: NodeParts, scope: TaskScope) -> None:
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, parts.host.entropy.stream("node.stores"))
        while not await self._try_reconcile(parts, scope):
            await sleep(parts.host.clock, backoff.next_s())

    async def _try_reconcile(self, parts: NodeParts, scope: TaskScope) -> bool:
        """Host new stores and stop hosting those that are gone; False when this must be tried again."""
        try:
            infos = await self._infos(parts)
            if any(_is_gone(hosted, infos) for hosted in self._hosted.values()):
                # A store is given up only by a list that is not out of date.
                await parts.client.metadata.tree.sync(own_paths.stores_path(parts.client.metadata.own_root))
                infos = await self._infos(parts)
                for hosted in self.hosted.values():
                    if _is_gone(hosted, infos):
                        await self._stop_hosting(parts, hosted, infos)
        except SessionExpired:
            raise
        except TriplicateError as error:
            parts.host.trace("kv.waits_for_metadata", node=parts.settings.node_id, error=str(error))
            return False
        for name, info in infos.items():
            if info is not None and not info.is_dropping and name not in self._hosted:
                hosted = self._hosted[name] = HostedStore(parts, self._settings, info, self._dropped.set)
                self._tasks[name] = scope.spawn(hosted.run(), name=f"store {name}")
        return None not in infos.values()

    async def _infos(self, parts: NodeParts) -> StoreList:
        """The stores as they are listed now."""
        infos: StoreList = {}
        for name in await store_names(parts.client):
            try:
                infos[name] = await read_store(parts.client, name)
            except NoSuchStore:
                continue  # It was dropped since the list was read.
            except FormatError as error:
                # The others are hosted nevertheless.
                parts.host.trace("kv.store_not_hosted", node=parts.settings.node_id, store=name, error=repr(error))
                infos[name] = None
        return infos

    async def _stop_hosting(self, parts: NodeParts, hosted: HostedStore, infos: StoreList) -> None:
        """Stop hosting a store. Its copy is deleted if the store is being dropped, and kept otherwise."""
        name = hosted.info.name
        info = infos.get(name)
        is_dropped = hosted.is_dropping or (info is not None and info.identity == hosted.info.identity and info.is_dropping)
        del self._hosted[name]
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait([task])
        parts.host.trace("kv.store_gone", node=parts.settings.node_id, store=name, dropped=is_dropped)
        if is_dropped:
            worker = parts.host.new_worker(f"kv-{name}-gone")
            try:
                await worker.run(empty_folder, parts.host.disk, hosted.folder)
            except OSError as error:
                parts.host.trace("kv.copy_stays", node=parts.settings.node_id, store=name, error=repr(error))
            finally:
                await worker.close()


def _is_gone(hosted: HostedStore, infos: StoreList) -> bool:
    name = hosted.info.name
    info = infos.get(name)
    return name not in infos or (info is not None and (info.identity != hosted.info.identity or info.is_dropping))
