"""Database nodes over the log's fake ledgers: several in one process, each with its own metadata session and folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.unit.log.fake import FakeClient, Stage
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.client import Client
from triplicate.config.log_settings import LogSettings
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SessionExpired, SqlError
from triplicate.log import KeySource, Logs
from triplicate.metadata import InjectedFault, MemoryTree, RenewingTree, Tree
from triplicate.sql import LEASE_S, DatabaseNode, HostedDatabases, SqlDatabase, create_database, database_info
from triplicate.sql.core.interface import Row, Value
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.storage.sqlite_file import ConnectionSetup

Result = TypeVar("Result")
SETTINGS = NodeSettings(
    election_delay_s=0.02,
    report_interval_s=0.05,
    retry_first_s=0.005,
    retry_longest_s=0.05,
    restart_first_s=0.02,
    restart_longest_s=0.2,
    name_wait_s=0.2,
    peer_probe_interval_s=0,
    writer_wait_s=2.0,
    reader_threads=1,
    balance_interval_s=0,
)


class Cluster:
    """One stage with a database ``db`` and nodes that a test starts and kills."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage()
        self.folder = folder
        self.nodes: dict[str, DatabaseNode] = {}
        self.databases: dict[str, HostedDatabases] = {}
        """Those of each node, also while it starts."""
        self.clients: dict[str, Client] = {}
        self.logs: dict[str, Logs] = {}
        self.keys: dict[str, KeySource] = {}
        """Keys of encrypted logs, by the name of the client or node that has them."""

    def client(self, name: str) -> Client:
        logs = self.stage.logs()
        self.logs[name] = Logs(logs.client, logs.settings, keys=self.keys.get(name))
        return cast("Client", self.logs[name].client)

    async def create(self, name: str = "db", lease_s: float = LEASE_S) -> None:
        settings = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)
        await create_database(self.client("admin"), name, settings, lease_s=lease_s)

    async def start(self, name: str, settings: NodeSettings = SETTINGS, client: Client | None = None) -> DatabaseNode:
        return await self.start_with(name, replace(settings, node_id=name, directory=str(self.folder / name)), client=client)

    async def start_with(
        self,
        name: str,
        settings: NodeSettings,
        tree: Tree | None = None,
        setup: ConnectionSetup | None = None,
        client: Client | None = None,
    ) -> DatabaseNode:
        """Start a node with exactly these settings, and with a metadata tree or a client of the test's own."""
        client = client or self.client(name)
        if tree is not None:
            cast("FakeClient", client).metadata.tree = tree
            self.logs[name] = Logs(self.logs[name].client, self.logs[name].settings)
        databases = self.databases[name] = HostedDatabases()
        metrics = client.metrics
        node = await DatabaseNode.start(
            client.host, client, self.logs[name], settings, databases, (name, 5432), metrics=metrics, setup=setup
        )
        self.nodes[name] = node
        self.clients[name] = client
        return node

    def renewing_tree(self) -> RenewingTree:
        """Metadata that open another session when one is lost, as those of real nodes do."""

        async def open_session() -> Tree:
            return MemoryTree(self.stage.store)

        return RenewingTree(MemoryTree(self.stage.store), open_session, self.stage.host)

    async def kill(self, name: str) -> None:
        """End a node as a crash does: its session and what that put up stay for a while."""
        node = self.nodes.pop(name)
        session = self.clients[name].metadata.tree.session_id
        gone = InjectedFault(raise_before=SessionExpired("the process is dead"))
        self.stage.store.fault = lambda session_id, operation, path: gone if session_id == session else None
        await node.stop()
        self.stage.store.fault = None

    def wake_watches(self) -> None:
        """Wake every watch, as a broken connection does."""
        for table in self.stage.store._sessions.values():
            table.wake_all()

    async def serving(self, node: str, position: int, name: str = "db") -> SqlDatabase:
        """The database on a node once it lets sessions in and stands at least at a position."""
        while True:
            found = self.databases[node].get(name)
            if found is not None and found.unusable is None and found.position >= position:
                return found
            await asyncio.sleep(0.005)

    async def stands_for_election(self, node: str, name: str = "db") -> None:
        """Wait until a node is a candidate. A leader that leaves the lead gives way to candidates only."""
        admin = self.client("admin")
        while node not in [candidate.node_id for candidate in (await database_info(admin, name)).nodes]:
            await asyncio.sleep(0.005)

    def database(self, node: str, name: str = "db") -> SqlDatabase:
        found = self.databases[node].get(name)
        assert found is not None
        return found

    async def leader(self, name: str = "db", *, besides: str = "") -> SqlDatabase:
        """The database on the node that leads."""
        while True:
            for node in list(self.nodes):
                found = self.databases[node].get(name)
                if node != besides and found is not None and found.is_leader:
                    return found
            await asyncio.sleep(0.005)

    def leader_name(self) -> str:
        return next(name for name, node in self.nodes.items() if (found := node.databases.get("db")) is not None and found.is_leader)

    async def expire(self, node: str) -> None:
        """End a node's metadata session, as if the store had declared it dead; the process lives on."""
        tree = cast("MemoryTree", self.clients[node].metadata.tree)
        self.stage.store.expire(tree.session_id)

    async def caught_up(self, node: str, position: int, name: str = "db") -> SqlDatabase:
        database = self.database(node, name)
        await eventually(lambda: database.position >= position)
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


def play(folder: Path, scene: Callable[[Cluster], Coroutine[Any, Any, Result]], nodes: int = 1, lease_s: float = LEASE_S) -> Result:
    """Run a test's coroutine with a database and some nodes, with a limit."""

    async def body() -> Result:
        async with asyncio.timeout(PLAY_LIMIT_S):
            cluster = Cluster(folder)
            await cluster.create(lease_s=lease_s)
            for index in range(nodes):
                await cluster.start(f"n{index + 1}")
            try:
                return await scene(cluster)
            finally:
                await cluster.stop()

    return asyncio.run(body())


async def fill(cluster: Cluster, count: int) -> int:
    """A table with some rows; returns the leader's position."""
    database = await cluster.leader()
    session = await database.session()
    await run(session, "create table if not exists t(id integer primary key autoincrement, a)")
    for index in range(count):
        await run(session, "insert into t(a) values($1)", (index,))
    return database.position
