"""One key-value store on a node."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.config import StoreSettings
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.store_directory import StoreDirectory, StoreInfo, log_purpose
from triplicate.replica import HostedCopy, NodeParts


class HostedStore(HostedCopy[ReplicatedStore, StoreInfo]):
    """One store on this node, with the tasks that run it. `run` it once."""

    def __init__(
        self,
        parts: NodeParts,
        settings: StoreSettings,
        directory: StoreDirectory,
        info: StoreInfo,
        on_gone: Callable[[], None],
        *,
        replaces_another: bool = False,
    ) -> None:
        """See `HostedCopy`."""
        self._settings = settings
        super().__init__(parts, parts.logs.acting_for(log_purpose(info)), directory, info, on_gone, replaces_another=replaces_another)

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
        store.find_leader = lambda: self.leader_for_clients
        return store

    def _entry_changed(self, entry: StoreInfo) -> None:
        """Nothing of a store's entry changes."""
