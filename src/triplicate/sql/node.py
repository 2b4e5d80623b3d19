"""A database node: hosts a copy of every database of the cluster."""

from __future__ import annotations

import asyncio
import os.path

from triplicate.client import Client
from triplicate.config.node import NodeSettings
from triplicate.errors import FormatError, NoNode, SessionExpired, TriplicateError
from triplicate.log import Logs
from triplicate.metadata import Watch, own
from triplicate.replica import Candidate, Election, Replica, ReplicaSettings, Role
from triplicate.runtime import Backoff, Host, Metrics, TaskScope, sleep

from .database import SqlDatabase
from .directory import DatabaseInfo, database_file, database_names, read_info
from .store import ConnectionSetup


class HostedDatabase:
    """One database on this node, with what runs it."""

    def __init__(self, info: DatabaseInfo, database: SqlDatabase, replica: Replica) -> None:
        self.info = info
        self.database = database
        self.replica = replica
        self.leader: Candidate | None = None

    @property
    def role(self) -> Role:
        return self.replica.role

    @property
    def start_position(self) -> int:
        """Where the local copy stood when the node began to host it."""
        return self.replica.start_position


class DatabaseNode:
    """Follows the list of databases and runs a replica of each; implements `interface.Databases` for servers.

    Args:
        client: the cluster; not closed by the node.
        logs: its logs.
        setup: called on every new SQLite connection; the same on every node.
    """

    def __init__(
        self,
        host: Host,
        client: Client,
        logs: Logs,
        settings: NodeSettings,
        metrics: Metrics | None = None,
        setup: ConnectionSetup | None = None,
    ) -> None:
        self._host = host
        self._client = client
        self._logs = logs
        self._settings = settings
        self._metrics = metrics
        self._setup = setup
        self._address = settings.advertised_address
        self._hosted: dict[str, HostedDatabase] = {}
        self._watch: Watch | None = None
        self._failure: BaseException | None = None
        self._failed_event: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._scope = TaskScope(f"node {settings.node_id}", on_failure=self._failed)

    @property
    def node_id(self) -> str:
        return self._settings.node_id

    @property
    def failure(self) -> BaseException | None:
        """Why the node stopped working by itself (its session with the metadata ended); it must be started anew."""
        return self._failure

    async def failed(self) -> BaseException:
        """Return when the node has stopped working by itself, with the reason; its process should end then."""
        return await asyncio.shield(self._failed_event)

    @property
    def hosted(self) -> dict[str, HostedDatabase]:
        """What runs here, by database name."""
        return dict(self._hosted)

    def get(self, name: str) -> SqlDatabase | None:
        hosted = self._hosted.get(name)
        return None if hosted is None else hosted.database

    def names(self) -> list[str]:
        return sorted(self._hosted)

    def positions(self) -> dict[str, int]:
        """The offset after the last record applied, by database."""
        return {name: hosted.database.position for name, hosted in sorted(self._hosted.items())}

    async def start(self, address: tuple[str, int] | None = None) -> None:
        """Open every local copy and begin to follow the databases that there are, and those that are made later. Returns when the
        copies are open, so `positions` tells where they stood.

        Args:
            address: host and port of the PostgreSQL server in front, told to other nodes' clients unless the setting says another.
        """
        self._address = self._settings.advertised_address or ("{}:{}".format(*address) if address else "")
        self._watch = self._client.metadata.tree.watch(own.databases_path(self._client.metadata.own_root))
        await self._look()
        for hosted in list(self._hosted.values()):
            await hosted.replica.opened
        self._scope.spawn(self._follow_list(self._watch), name="databases")

    async def stop(self) -> None:
        """End all sessions and stop following. Idempotent."""
        if self._watch is not None:
            self._watch.close()
        await self._scope.aclose()
        for hosted in list(self._hosted.values()):
            await hosted.database.close()
        self._hosted.clear()

    def _failed(self, error: BaseException) -> None:
        self._failure = error
        if not self._failed_event.done():
            self._failed_event.set_result(error)
        self._host.trace("node.failed", node=self.node_id, error=repr(error))

    async def _follow_list(self, watch: Watch) -> None:
        backoff = Backoff(0.05, 2.0, self._host.entropy.stream("node.databases"))
        while True:
            await watch.changed()
            try:
                await self._look()
                backoff.reset()
            except SessionExpired:
                raise
            except TriplicateError as error:
                self._host.trace("node.databases", error=repr(error))
                await sleep(self._host.clock, backoff.next_s())

    async def _look(self) -> None:
        """Host what is new, let go of what is gone."""
        names = await database_names(self._client)
        for name in names:
            if name not in self._hosted:
                await self._host_database(await read_info(self._client, name))

    async def _host_database(self, info: DatabaseInfo) -> None:
        path = str(database_file(self._settings.directory, info.name))
        self._host.disk.mkdir(os.path.dirname(path))
        database = SqlDatabase(self._host, info.name, info.identity, path, self._settings, metrics=self._metrics, setup=self._setup)
        node_path = own.database_path(self._client.metadata.own_root, info.name)
        election = Election(
            self._host, self._client.metadata.tree, node_path, self.node_id, self._address, delay_s=self._settings.election_delay_s
        )
        replica = Replica(
            self._host,
            self._logs,
            info.log,
            database,
            election,
            self.node_id,
            ReplicaSettings(
                self._settings.apply_entries,
                self._settings.apply_size_bytes,
                self._settings.report_interval_s,
                self._settings.retry_first_s,
                self._settings.retry_longest_s,
            ),
        )
        hosted = HostedDatabase(info, database, replica)
        database.find_leader = lambda: hosted.leader.address if hosted.leader is not None else None
        self._hosted[info.name] = hosted
        self._scope.spawn(replica.run(), name=f"replica {info.name}")
        self._scope.spawn(self._watch_leader(hosted, election, node_path), name=f"leader of {info.name}")

    async def _watch_leader(self, hosted: HostedDatabase, election: Election, path: str) -> None:
        """Know who leads, for hints to clients."""
        watch = self._client.metadata.tree.watch(f"{path}/leader")
        try:
            while True:
                try:
                    hosted.leader = await election.leader()
                except (NoNode, FormatError):
                    hosted.leader = None
                await watch.changed()
        finally:
            watch.close()
