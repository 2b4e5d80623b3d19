"""Databases that begin with a content, on the nodes of a test."""

from __future__ import annotations

import asyncio

from tests.unit.sql.cluster import Cluster
from triplicate.sql import SqlDatabase


async def hosted(cluster: Cluster, name: str, identity: bytes) -> SqlDatabase:
    """The database on the node that leads it."""
    while True:
        for node in cluster.nodes.values():
            one = node.databases.hosted.get(name)
            if one is not None and one.info.identity == identity and one.machine.is_leader:
                return one.machine
        await asyncio.sleep(0.005)
