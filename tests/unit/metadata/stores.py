"""The drivers of the metadata tree, opened alike for the contract suite."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.zookeeper.server import shared_server
from triplicate.metadata import MemoryStore, MemoryTree, RenewingTree, ReplicatedMemoryStore, ReplicatedMemoryTree, SqliteTree, Tree
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import Host, real_host

Result = TypeVar("Result")

DRIVERS = ("memory", "served", "sqlite", "renewing", "zookeeper")

OpenSession = Callable[[], Awaitable[Tree]]


async def fresh_servers() -> str:
    """The shared ZooKeeper with a node of the test's own as its root: ``host:port/node``, as ZooKeeper's clients write it."""
    address = shared_server().address
    tree = await ZooKeeperTree.open(address, real_host("test", seed=1))
    folder = await tree.create("/test-", sequential=True)
    await tree.close()
    return address + folder


def served_store(host: Host, seed: int = 1) -> ReplicatedMemoryStore:
    """The tree in memory behind several servers."""
    clock = host.clock
    return ReplicatedMemoryStore(clock, lambda delay_s, callback: clock.call_at(clock.monotonic() + delay_s, callback), random.Random(seed))


@asynccontextmanager
async def sessions(driver: str, folder: Path) -> AsyncIterator[OpenSession]:
    """Sessions with one store; all are closed at the end."""
    host = real_host("test", seed=1)
    memory = MemoryStore(host.clock)
    served = served_store(host)
    opened: list[Tree] = []
    servers = await fresh_servers() if driver == "zookeeper" else ""

    async def in_memory() -> Tree:
        return MemoryTree(memory)

    async def open_session() -> Tree:
        tree: Tree
        if driver == "sqlite":
            tree = await SqliteTree.open(str(folder / "metadata.db"), host)
        elif driver == "served":
            tree = ReplicatedMemoryTree(served)
        elif driver == "renewing":
            tree = RenewingTree(MemoryTree(memory), in_memory, host)
        elif driver == "zookeeper":
            tree = await ZooKeeperTree.open(servers, host)
        else:
            tree = MemoryTree(memory)
        opened.append(tree)
        return tree

    try:
        yield open_session
    finally:
        for tree in opened:
            await tree.close()


def run(body: Coroutine[Any, Any, Result], limit_s: float = 20.0) -> Result:
    """Run an async test with a limit on its time."""

    async def limited() -> Result:
        async with asyncio.timeout(limit_s):
            return await body

    return asyncio.run(limited())
