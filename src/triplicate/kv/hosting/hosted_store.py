"""One key-value store on a node."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.config import StoreSettings
from triplicate.errors import NoSuchStore
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.store_directory import StoreInfo, log_purpose, read_store
from triplicate.kv.storage.copy_folder import store_folder
from triplicate.metadata import own_paths
from triplicate.replica import HostedCopy, NodeParts, ReplicaPlace


class HostedStore(HostedCopy[ReplicatedStore]):
    """One store on this node, with the tasks that run it. `run` it once.

    Args:
        on_drop: called when the store is being dropped.
    """

    def __init__(self, parts: NodeParts, settings: StoreSettings, info: StoreInfo, on_drop: Callable[[], None]) -> None:
        self.info = info
        self.is_dropping = False
        self._settings = settings
        self._on_drop = on_drop
        node_path = own_paths.store_path(parts.client.metadata.own_root, info.name)
        place = ReplicaPlace("store", info.name, info.log, node_path, store_folder(parts.settings.directory, info.name))
        super().__init__(parts, parts.logs.acting_for(log_purpose(info)), place)

    @property
    def store(self) -> ReplicatedStore:
        return self.machine

    def _new_machine(self) -> ReplicatedStore:
        parts, info = self._node, self.info
        store = ReplicatedStore(
            parts.host,
            info.name,
            info.identity,
            self.folder,
            self._settings,
            parts.settings,
            metrics=parts.metrics,
            lease_s=info.lease_ms / 1000,
        )
        store.find_leader = lambda: self.leader
        return store

    async def _read_entry(self) -> None:
        """Notice that the store is being dropped."""
        try:
            found = await read_store(self._node.client, self.info.name)
        except NoSuchStore:
            self._on_drop()
        else:
            if found.identity == self.info.identity and found.is_dropping:
                self.is_dropping = True
                self._on_drop()
