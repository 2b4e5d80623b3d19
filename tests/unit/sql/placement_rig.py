"""Several nodes in one process that balance quickly, with databases that are placed on some of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.unit.sql.cluster import SETTINGS, Cluster
from tests.waiting import PLAY_LIMIT_S
from triplicate.client import Client
from triplicate.log import LogSettings
from triplicate.replica.core.placement import Placement
from triplicate.sql import create_database, database_info

Result = TypeVar("Result")
ALONE = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)
BALANCED = replace(SETTINGS, balance_interval_s=0.05, balance_settle_s=0.2, absent_node_limit_s=3600.0, handover_limit_s=1.0)
BY_HAND = replace(BALANCED, balance_interval_s=0)
"""Settings without a balancer: the test changes placements itself."""
POLL_S = 0.01


async def create(cluster: Cluster, name: str, placement: Placement) -> Client:
    """Make a database with a placement. Its leaders have no lease, so that a take-over does not wait."""
    admin = cluster.client("admin")
    await create_database(admin, name, ALONE, lease_s=0, placement=placement)
    return admin


async def hosts(cluster: Cluster, name: str) -> set[str]:
    """The nodes whose process has a copy of a database."""
    return {node for node, databases in cluster.databases.items() if node in cluster.nodes and databases.get(name) is not None}


async def hosted_by(cluster: Cluster, name: str, nodes: set[str]) -> None:
    """Wait until exactly these nodes have a copy."""
    while await hosts(cluster, name) != nodes:
        await asyncio.sleep(POLL_S)


async def led_by(admin: Client, name: str, node: str | None = None, *, besides: str = "") -> str:
    """Wait until a node leads a database: a certain one, any, or any besides one."""
    while True:
        info = await database_info(admin, name)
        if info.is_led and info.leader != besides and info.leader is not None and node in (None, info.leader):
            return info.leader
        await asyncio.sleep(POLL_S)


def play_placed(folder: Path, scene: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Result:
    """Run a test's coroutine with a cluster that has neither nodes nor databases, with a limit."""

    async def body() -> Result:
        async with asyncio.timeout(PLAY_LIMIT_S):
            cluster = Cluster(folder)
            try:
                return await scene(cluster)
            finally:
                await cluster.stop()

    return asyncio.run(body())
