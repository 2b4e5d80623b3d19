"""The ZooKeeper driver repeats a write when the connection breaks before its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.errors import ConnectionLost
from triplicate.metadata.drivers.zookeeper_tree import Request, ZooKeeperTree

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_tree.py::test_a_write_whose_connection_breaks_is_not_sent_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    run = ZooKeeperTree._run

    async def until_stored(tree: ZooKeeperTree, path: str, request: Request) -> object:
        for _ in range(200):  # The server takes a while to come back.
            try:
                return await run(tree, path, request)
            except ConnectionLost:
                await asyncio.sleep(0.05)
        return await run(tree, path, request)

    patch(ZooKeeperTree, "_run", until_stored)
