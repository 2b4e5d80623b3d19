"""Nodes with key-value stores over the log's fake ledgers: several in one process, each with its own metadata session and folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from tests.unit.log.fake import Stage
from tests.unit.sql.cluster import SETTINGS as NODE_SETTINGS
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.client import Client
from triplicate.config import NodeSettings, StoreSettings
from triplicate.config.log_settings import LogSettings
from triplicate.errors import SessionExpired
from triplicate.kv import LEASE_S, HostedStores, ReplicatedStore, create_store
from triplicate.log import Logs
from triplicate.metadata import InjectedFault
from triplicate.sql import DatabaseNode, HostedDatabases

Result = TypeVar("Result")
SETTINGS = StoreSettings(mark_interval_s=0.05)


class StoreCluster:
    """One stage with a store ``s`` and nodes that a test starts and kills."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage()
        self.folder = folder
        self.nodes: dict[str, DatabaseNode] = {}
        self.stores: dict[str, HostedStores] = {}
        self.clients: dict[str, Client] = {}
        self.logs: dict[str, Logs] = {}

    def client(self, name: str) -> Client:
        self.logs[name] = self.stage.logs()
        return cast("Client", self.logs[name].client)

    async def create(self, name: str = "s", lease_s: float = LEASE_S) -> None:
        settings = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)
        await create_store(self.client("admin"), name, settings, lease_s=lease_s)

    async def start(self, name: str, node: NodeSettings = NODE_SETTINGS, settings: StoreSettings = SETTINGS) -> None:
        client = self.client(name)
        stores = self.stores[name] = HostedStores(settings)
        own = replace(node, node_id=name, directory=str(self.folder / name))
        self.clients[name] = client
        self.nodes[name] = await DatabaseNode.start(
            client.host,
            client,
            self.logs[name],
            own,
            HostedDatabases(),
            (name, 5432),
            beside=lambda parts, scope: stores.host(replace(parts, resp_address=f"{name}:6379"), scope),
        )

    async def kill(self, name: str) -> None:
        """End a node as a crash does: its session and what that put up stay for a while."""
        node = self.nodes.pop(name)
        session = self.clients[name].metadata.tree.session_id
        gone = InjectedFault(raise_before=SessionExpired("the process is dead"))
        self.stage.store.fault = lambda session_id, operation, path: gone if session_id == session else None
        await node.stop()
        self.stage.store.fault = None
        self.stage.store.expire(session)

    async def stop(self, name: str) -> None:
        await self.nodes.pop(name).stop()

    def store(self, node: str, name: str = "s") -> ReplicatedStore:
        found = self.stores[node].get(name)
        assert found is not None
        return found

    async def leader(self, name: str = "s", *, besides: str = "") -> ReplicatedStore:
        """The store on the node that leads."""
        while True:
            for node in list(self.nodes):
                found = self.stores[node].get(name)
                if node != besides and found is not None and found.is_leader:
                    return found
            await asyncio.sleep(0.005)

    def leader_name(self) -> str:
        return next(name for name in self.nodes if self.store(name).is_leader)

    async def caught_up(self, node: str, position: int, name: str = "s") -> ReplicatedStore:
        await eventually(lambda: (one := self.stores[node].get(name)) is not None and one.unusable is None and one.position >= position)
        return self.store(node, name)


def play(folder: Path, scene: Callable[[StoreCluster], Coroutine[None, None, Result]], nodes: int = 1, lease_s: float = LEASE_S) -> Result:
    """Run a test's coroutine with a store and some nodes, with a limit."""

    async def body() -> Result:
        async with asyncio.timeout(PLAY_LIMIT_S):
            cluster = StoreCluster(folder)
            await cluster.create(lease_s=lease_s)
            for index in range(nodes):
                await cluster.start(f"n{index + 1}")
            try:
                return await scene(cluster)
            finally:
                for node in cluster.nodes.values():
                    await node.stop()

    return asyncio.run(body())
