"""PostgreSQL servers before the nodes of a replicated database in memory, for tests with real clients in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from tests.unit.sql.cluster import Cluster, play
from triplicate.runtime import real_host
from triplicate.sql import PostgresServer, SqlDatabase


class ServedCluster:
    """The nodes of a cluster, each with a server."""

    def __init__(self, cluster: Cluster, held: AsyncExitStack) -> None:
        self.cluster = cluster
        self.held = held
        self._servers: dict[str, PostgresServer] = {}

    async def server(self, node: str) -> PostgresServer:
        if node not in self._servers:
            server = await PostgresServer.open(real_host("pg-test"), self.cluster.databases[node], ("127.0.0.1", 0))
            self.held.push_async_callback(server.stop)
            self._servers[node] = server
        return self._servers[node]

    async def leader(self) -> tuple[str, SqlDatabase]:
        """The name of the node that leads, and its copy."""
        database = await self.cluster.leader()
        return self.cluster.leader_name(), database

    async def follower(self) -> str:
        """The name of a node that follows and is up to date."""
        leader, database = await self.leader()
        name = next(node for node in self.cluster.nodes if node != leader)
        await self.cluster.serving(name, database.position)
        return name

    async def psycopg(self, node: str, user: str = "me") -> psycopg.AsyncConnection[Any]:
        host, port = (await self.server(node)).address
        connection = await psycopg.AsyncConnection.connect(f"host={host} port={port} dbname=db user={user}", autocommit=True)
        self.held.push_async_callback(connection.close)
        return connection

    async def asyncpg(self, node: str) -> Any:
        host, port = (await self.server(node)).address
        connection = await asyncpg.connect(host=host, port=port, database="db", user="me")
        self.held.push_async_callback(connection.close)
        return connection


def play_served(folder: Path, scene: Callable[[ServedCluster], Awaitable[None]], nodes: int = 1) -> None:
    """Run a test's coroutine with nodes and their servers, with a limit."""

    async def served(cluster: Cluster) -> None:
        async with AsyncExitStack() as held:
            await cluster.leader()
            await scene(ServedCluster(cluster, held))

    play(folder, served, nodes=nodes, lease_s=0.0)


async def notes(connection: psycopg.AsyncConnection[Any], count: int) -> list[tuple[str, str]]:
    """The next notifications, as (channel, payload); waits for this number of them."""
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(10):
        async for note in connection.notifies():
            found.append((note.channel, note.payload))
            if len(found) == count:
                break
    return found
