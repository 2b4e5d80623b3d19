"""Database nodes in a simulated cluster: the real code, over copies in temporary files of the machine that simulates.

SQLite writes its files by itself, so a copy is outside the simulated disk: it lies in a temporary folder, in memory where there is such a
file system. A power failure removes it, and the node rebuilds it from the log. Where only the process was killed it finds the contents of
the file and its write-ahead log at that instant. The folder's name must not enter the record of a run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from triplicate.client import Client
from triplicate.config import NodeSettings
from triplicate.errors import MetadataError, SessionExpired, TriplicateError, WrongCluster
from triplicate.log import LogClientSettings, Logs
from triplicate.metadata import ReplicatedMemoryStore, ReplicatedMemoryTree, Tree, Watch
from triplicate.replica import NodeParts, Role
from triplicate.runtime import Disk, File, Host, TaskScope, first_of, real_host, resolve
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate.sim.virtual_loop import Life, context_of
from triplicate.sql import DatabaseNode, HostedDatabases, PostgresServer, SqlDatabase
from triplicate_simulator.cluster.simulated_cluster import SimulatedCluster, SimulatedNode

Result = TypeVar("Result")

DATABASE = "books"
"""Name of the database; where there are several, of the first."""
MEMORY_FOLDER = "/dev/shm"
DIRECTORY_IDENTITY = "NODE"
"""The file that identifies a node's directory."""
SQL_PORT = 5432
RESTART_PAUSE_S = 0.3
"""Delay until a process that ended by itself is started again."""


class CopyFolders:
    """The temporary folder of one run, with one folder for each copy that a node ever had."""

    def __init__(self) -> None:
        parent = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="triplicate-simulated-", dir=parent))
        self._end = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._count = 0

    def new(self) -> Path:
        """Return a folder without a copy."""
        self._count += 1
        return self.folder / f"{self._count:04}"

    def connections(self, folder: Path | None = None) -> list[apsw.Connection]:
        """SQLite's open connections to the copies below a folder."""
        prefix = f"{folder or self.folder}{os.sep}"
        return [connection for connection in apsw.connections() if connection.filename.startswith(prefix)]

    def remove(self) -> None:
        """Delete everything. Idempotent."""
        self._end()


def connection_setup(host: SimulatedHost) -> Callable[[apsw.Connection], None]:
    """Return the setup of connections of one process.

    Everything runs in one thread: a busy database stays busy, and a wait would take real time. Losses are simulated by deleting the file,
    so nothing needs to be synced. Random values and the time of day are the simulated node's: they differ on each node, which shows when a
    statement is run again instead of its effects being applied.
    """
    rng = host.world.rng(host.name, host.life.number, "chance in statements")

    def random_number(*_: Any) -> int:
        return rng.getrandbits(64) - (1 << 63)

    def random_bytes(*arguments: Any) -> bytes:
        return rng.randbytes(int(arguments[0]))

    def wall_us(*_: Any) -> int:
        return host.port.clock.wall_us()

    def setup(connection: apsw.Connection) -> None:
        connection.set_busy_timeout(0)
        connection.execute("pragma synchronous = off")
        connection.create_scalar_function("random", random_number, 0)
        connection.create_scalar_function("randomblob", random_bytes, 1)
        connection.create_scalar_function("wall_us", wall_us, 0)

    return setup


class IsolatedTree(ReplicatedMemoryTree):
    """A session that can be cut off from the metadata: it then gets no notification, not even of its expiry."""

    def __init__(self, store: ReplicatedMemoryStore, reachable: asyncio.Event) -> None:
        super().__init__(store)
        self._reachable = reachable

    def watch(self, path: str) -> Any:
        return _IsolatedWatch(super().watch(path), self._reachable)

    async def _run(self, name: str, path: str, apply: Callable[[Any], Result]) -> Result:
        await self._reachable.wait()
        return await super()._run(name, path, apply)


class _IsolatedWatch:
    """A watch that reports nothing while its session is cut off."""

    def __init__(self, watch: Watch, reachable: asyncio.Event) -> None:
        self._watch = watch
        self._reachable = reachable

    async def changed(self) -> None:
        try:
            await self._watch.changed()
        except SessionExpired:
            await self._reachable.wait()
            raise
        await self._reachable.wait()

    def close(self) -> None:
        self._watch.close()


class CopyDisk:
    """The part of the disk port that a database node uses itself, on the real folder; the rest is the simulated disk's."""

    def __init__(self, simulated: Disk, life: Life) -> None:
        self._simulated = simulated
        self._life = life
        self._real = real_host("copies").disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulated, name)

    def mkdir(self, path: str) -> None:
        self._life.check()
        self._real.mkdir(path)

    def exists(self, path: str) -> bool:
        self._life.check()
        return self._real.exists(path)

    def names(self, path: str) -> list[str]:
        self._life.check()
        return self._real.names(path)

    def rename(self, source: str, target: str) -> None:
        self._life.check()
        self._real.rename(source, target)

    def delete(self, path: str) -> None:
        self._life.check()
        self._real.delete(path)

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        self._life.check()
        return self._real.open(path, create=create, exclusive=exclusive, readonly=readonly)

    def sync_directory(self, path: str) -> None:
        self._life.check()

    def lock(self, path: str) -> Callable[[], None]:
        """Do nothing: the folder belongs to the process. Each life that does not find its predecessor's files has a new one."""
        self._life.check()
        self._real.open(path, create=True).close()
        return lambda: None


class DatabaseReplica(ABC):
    """One database on one node, over all the node's lives, as clients of the node see it."""

    database_name: str

    @property
    @abstractmethod
    def server(self) -> DatabaseServer:
        """The node's process."""

    @property
    def database(self) -> SqlDatabase | None:
        """The database on this node, once it is open."""
        server = self.server
        return None if server.databases is None or not server.alive else server.databases.get(self.database_name)

    @property
    def leads(self) -> bool:
        """Whether the node considers itself leader."""
        database = self.database
        return database is not None and database.is_leader

    @property
    def leading_epoch(self) -> int:
        """The epoch in which the node considers itself leader; 0 when it does not."""
        database = self.database
        return 0 if database is None or database.leadership is None else database.leadership.ids.epoch

    @property
    def diverged(self) -> str | None:
        """Why the copy is wrong, if the node has found out."""
        databases = self.server.databases
        hosted = databases.hosted.get(self.database_name) if databases is not None else None
        return hosted.replica.reason if hosted is not None and hosted.role is Role.DIVERGED else None

    async def call(self, work: Callable[[SqlDatabase], Awaitable[Result]]) -> Result:
        """Run a function with the database, as part of the node's process.

        Raises:
            NodeDied: the process has ended, or ends before this is done.
        """
        host, database = self.server.host, self.database
        if host is None or database is None:
            raise NodeDied(self.server.name)

        async def run() -> Result:
            return await work(database)

        return await host.call(run(), name="client of the database")


class FurtherReplica(DatabaseReplica):
    """A database other than the first, on a node that has several."""

    def __init__(self, server: DatabaseServer, database_name: str) -> None:
        self._server = server
        self.database_name = database_name

    @property
    def server(self) -> DatabaseServer:
        return self._server


class DatabaseServer(SimulatedNode, DatabaseReplica):
    """A process with a database node, over all its lives; also the replica of the first database.

    `keep_running` runs the process and restarts it whenever it may run.
    """

    database_name = DATABASE

    def __init__(
        self, cluster: SimulatedCluster, name: str, copies: CopyFolders, settings: NodeSettings, log_settings: LogClientSettings
    ) -> None:
        super().__init__(cluster, name)
        self.copies = copies
        self.folder = copies.new()
        self.databases: HostedDatabases | None = None
        self.node: DatabaseNode | None = None
        """The node once it has started."""
        self.retired = False
        self.starts = 0
        self.reachable = asyncio.Event()
        """Cleared while the process can be reached by bookies and clients, but not by the metadata."""
        self.reachable.set()
        self._settings = settings
        self._log_settings = log_settings
        self._stop: asyncio.Future[None] | None = None
        self._serves = False
        """Whether the present life has begun to serve."""
        self._is_stopping = False
        """Whether the present life was asked to end."""
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def server(self) -> DatabaseServer:
        return self

    # Its lives.

    async def keep_running(self) -> None:
        """Run the process until `retire`; start it again after each of its ends."""
        while not self.retired:
            await self.allowed.wait()
            host = self.host if self.host is not None and self.host.alive else self.power_on()
            try:
                await host.call(self._serve(host), name=self.name)
            except NodeDied:
                continue
            except TriplicateError as error:
                self._judge_end(error)
            self._ended.set()
            if not self.retired:
                await asyncio.sleep(RESTART_PAUSE_S)

    def _judge_end(self, error: BaseException) -> None:
        """Judge an error that ended the process. If it was asked to end, that is no end by itself."""
        if self._is_stopping:
            self.cluster.world.recorder.fact(self.name, "process.stop_failed", {"error": repr(error)})
            return
        metadata_away = isinstance(error, MetadataError | TimeoutError) and not isinstance(error, WrongCluster)
        excuse = "metadata_away_at_start" if metadata_away and not self._serves else ""
        self.cluster.report_end(self.name, error, excuse=excuse)

    async def _serve(self, host: SimulatedHost) -> None:
        self._ended.clear()
        self._serves = self._is_stopping = False
        self.starts += 1
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = stop
        metadata = await self.open_metadata(host.port)
        try:
            async with Client(host.port, metadata, self.cluster.options.client_settings) as client:
                port = replace(host.port, disk=cast("Disk", CopyDisk(host.port.disk, host.life)), trace=self._trace(host.port))
                settings = replace(self._settings, node_id=self.name, directory=str(self.folder))
                databases = self.databases = HostedDatabases()
                # Peers check there whether the process answers; statements come through `DatabaseReplica.call`.
                server = await PostgresServer.open(port, databases, (self.name, SQL_PORT))
                logs, setup = Logs(client, self._log_settings), connection_setup(host)
                try:
                    node = await DatabaseNode.start(
                        port, client, logs, settings, databases, (self.name, SQL_PORT), setup=setup, beside=self._beside()
                    )
                except BaseException:
                    self.databases = None
                    await server.stop()
                    raise
                self.node = node
                try:
                    self._serves = True
                    _, failure = await first_of([_wait(stop), node.failed()], name="end of the process")
                    if failure is not None:
                        self._judge_end(failure)
                finally:
                    self.databases = self.node = None
                    await server.stop()
                    await node.stop()
        finally:
            await metadata.aclose()

    def _beside(self) -> Callable[[NodeParts, TaskScope], Coroutine[Any, Any, None]] | None:
        """Hosts other replicas of the process, beside its databases."""
        return None

    def _trace(self, host: Host) -> Any:
        folder = str(self.folder)

        def trace(kind: str, /, **facts: object) -> None:
            host.trace(kind, **{name: value.replace(folder, "") if isinstance(value, str) else value for name, value in facts.items()})

        return trace

    async def _open_session(self) -> Tree:
        reachable = self.reachable
        await reachable.wait()
        await self.cluster.store.wait_until_answering()
        return self.cluster.open_session(self.name, lambda store: IsolatedTree(store, reachable))

    async def stop(self) -> None:
        """End the process in order, and return when it has ended. It keeps its file."""
        self._is_stopping = True
        if self._stop is not None:
            resolve(self._stop, None)
        await self._ended.wait()

    async def retire(self) -> None:
        """End the process in order, and for good."""
        self.retired = True
        await self.stop()

    def crash(self, *, silent: bool = False, keep_unsynced: bool = False) -> None:
        """Kill the process, or cut the power: then the copy is lost."""
        if not self.alive:
            return
        before, self.folder = self.folder, self.copies.new()
        self.databases = self.node = None
        self.reachable = asyncio.Event()
        self.reachable.set()
        super().crash(silent=silent, keep_unsynced=keep_unsynced)
        self._ended.set()
        if keep_unsynced and before.exists():
            shutil.copytree(before, self.folder, ignore=shutil.ignore_patterns("*-shm"))
        elif (before / DIRECTORY_IDENTITY).exists():
            # It was synced when it was made, so it survives a power failure.
            self.folder.mkdir(parents=True)
            shutil.copy(before / DIRECTORY_IDENTITY, self.folder)
        # Deferred: the crash may come from a function that uses one of them.
        self.cluster.world.loop.call_soon(self._forget, before, context=context_of(None))

    def _forget(self, folder: Path) -> None:
        """Close the dead process's connections, as an operating system does."""
        for connection in self.copies.connections(folder):
            connection.close(True)
        shutil.rmtree(folder, ignore_errors=True)


async def _wait(event: Awaitable[Any]) -> BaseException | None:
    await event
    return None
