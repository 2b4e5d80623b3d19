"""Database nodes over the log's fake ledgers: several in one process, each with its own metadata session and folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.unit.log.fake import Stage
from triplicate.client import Client
from triplicate.config.log import LogSettings
from triplicate.config.node import NodeSettings
from triplicate.errors import SqlError
from triplicate.log import Logs
from triplicate.metadata import MemoryTree
from triplicate.sql import DatabaseNode, SqlDatabase, create_database
from triplicate.sql.interface import Row, Value
from triplicate.sql.session import SqlSession

Result = TypeVar("Result")
SETTINGS = NodeSettings(
    election_delay_s=0.02, report_interval_s=0.05, retry_first_s=0.005, retry_longest_s=0.05, writer_wait_s=2.0, reader_threads=1
)


class Cluster:
    """One stage with a database ``db`` and nodes that a test starts and kills."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage()
        self.folder = folder
        self.nodes: dict[str, DatabaseNode] = {}
        self.logs: dict[str, Logs] = {}

    def client(self, name: str) -> Client:
        self.logs[name] = self.stage.logs()
        return cast("Client", self.logs[name].client)

    async def create(self, name: str = "db") -> None:
        await create_database(self.client("admin"), name, LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1))

    async def start(self, name: str, settings: NodeSettings = SETTINGS) -> DatabaseNode:
        client = self.client(name)
        settings = replace(settings, node_id=name, directory=str(self.folder / name))
        node = self.nodes[name] = DatabaseNode(client.host, client, self.logs[name], settings)
        await node.start((name, 5432))
        return node

    def database(self, node: str, name: str = "db") -> SqlDatabase:
        found = self.nodes[node].get(name)
        assert found is not None
        return found

    async def leader(self, name: str = "db", *, besides: str = "") -> SqlDatabase:
        """The database on the node that leads."""
        while True:
            for node in list(self.nodes):
                found = self.nodes[node].get(name)
                if node != besides and found is not None and found.is_leader:
                    return found
            await asyncio.sleep(0.005)

    def leader_name(self) -> str:
        return next(name for name, node in self.nodes.items() if (found := node.get("db")) is not None and found.is_leader)

    async def expire(self, node: str) -> None:
        """End a node's metadata session, as if the store had declared it dead; the process lives on."""
        tree = cast("MemoryTree", self.nodes[node]._client.metadata.tree)
        self.stage.store.expire(tree.session_id)

    async def caught_up(self, node: str, position: int, name: str = "db") -> SqlDatabase:
        database = self.database(node, name)
        while database.position < position:
            await asyncio.sleep(0.005)
        return database

    async def stop(self) -> None:
        for node in self.nodes.values():
            await node.stop()


async def run(session: SqlSession, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
    """Prepare, start and fetch everything."""
    cursor = await session.start(await session.prepare(sql), parameters)
    rows: list[Row] = []
    while got := await cursor.fetch(1000):
        rows += got
    await cursor.close()
    return rows


async def affected(session: SqlSession, sql: str, parameters: Sequence[Value] = ()) -> int:
    return (await session.start(await session.prepare(sql), parameters)).rows_affected


async def state_of(work: Coroutine[Any, Any, Any]) -> str:
    """The SQLSTATE that something fails with, '' when it does not."""
    try:
        await work
    except SqlError as error:
        return error.sqlstate
    return ""


def play(folder: Path, scene: Callable[[Cluster], Coroutine[Any, Any, Result]], nodes: int = 1) -> Result:
    """Run a test's coroutine with a database and some nodes, for at most 20 seconds."""

    async def body() -> Result:
        async with asyncio.timeout(20):
            cluster = Cluster(folder)
            await cluster.create()
            for index in range(nodes):
                await cluster.start(f"n{index + 1}")
            try:
                return await scene(cluster)
            finally:
                await cluster.stop()

    return asyncio.run(body())
