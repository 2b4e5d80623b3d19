"""A simulated cluster: the real bookies and clients on simulated hosts over one metadata store in memory.

A node is started, crashed and started again; its disk and its identity survive its lives. The metadata store itself does not fail, but
answers with delay, and a node's session outlives its crash by a while, as with ZooKeeper. The supervision of processes is here too: a
bookie that ends by itself, or that cannot start for the moment, is started again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeVar

from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.config import BookieSettings, ClientSettings
from triplicate.errors import BadVersion, ConnectionLost, MetadataError, NoNode, SessionExpired, TriplicateError, WrongCluster
from triplicate.metadata import ClusterMetadata, InjectedFault, RenewingTree, ReplicatedMemoryStore, ReplicatedMemoryTree, Tree
from triplicate.runtime import Host, Timer
from triplicate.sim.host import NodeDied, SimulatedClock, SimulatedHost, World
from triplicate.sim.transport import delivers_to_nobody
from triplicate.sim.virtual_loop import context_of
from triplicate_simulator.cluster.bookie_setup import JOURNAL_DIRECTORY, LEDGER_DIRECTORY, bookie_settings
from triplicate_simulator.cluster.plan import PLAIN_SETUP

__all__ = ["JOURNAL_DIRECTORY", "LEDGER_DIRECTORY", "BookieNode", "ClientNode", "ClusterOptions", "SimulatedCluster", "SimulatedNode"]

Result = TypeVar("Result")

AFTERMATH_S = 20.0
"""After space returns, a refused write may still be reported this late: completions wait for queued I/O, and the slowest simulated sync
takes 18 s."""
EXCUSED_ENDS = {
    "metadata_away_at_start": "the metadata do not answer while the process starts; its supervisor starts it again",
}
"""Reasons why a process may end without being killed or stopped, by name. Any other end is a violation."""
CONTENDED = re.compile(r"^/ledgers/.*/L\d+$|/logs/[^/]+$")
"""Metadata nodes that are changed by compare-and-set alone: a ledger's metadata, a log's head."""


def small_bookie_settings(bookie_id: str) -> BookieSettings:
    """Settings with which a short run rolls journals, flushes and collects garbage many times."""
    return bookie_settings(PLAIN_SETUP)(bookie_id)


@dataclass
class ClusterOptions:
    """Setup of a simulated cluster."""

    bookies: int = 5
    machines: Mapping[str, str] = field(default_factory=dict)
    """The machine of each bookie that shares one. The others have machines of their own."""
    bookie_settings: Callable[[str], BookieSettings] = small_bookie_settings
    client_settings: ClientSettings = field(default_factory=lambda: ClientSettings(trash_period_s=0.0))
    bookie_chores: Callable[[Host, ClusterMetadata, Bookie], None] | None = None
    """Called with each bookie that has started: adds further work of its process."""
    metadata_loss_rate: float = 0.0
    """Share of metadata operations whose connection is lost, half of them after the operation was applied."""
    metadata_delay_low_s: float = 0.0002
    metadata_delay_high_s: float = 0.004
    metadata_slowness: float = 1.0
    """Factor on these delays."""
    metadata_conflict_rate: float = 0.0
    """Share of changes of a ledger's metadata or a log's head that are preceded by another write of the same node."""
    session_low_s: float = 1.0
    session_high_s: float = 5.0
    """Bounds of the time between a node's crash and the end of its session."""
    restart_timeout_s: float = 60.0
    """A bookie that does not start within this time has failed."""
    start_again_s: float = 0.5
    """Delay until a bookie that ended by itself, or could not start, is started again."""
    starts_max: int = 400
    """A bookie that failed to start this many times in a row stays down."""


class SimulatedNode:
    """One named node over all its lives."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.host: SimulatedHost | None = None
        self.crashes = 0
        self.allowed = asyncio.Event()
        """Cleared while the node was killed and may not come back yet."""
        self.allowed.set()
        self._tree: ReplicatedMemoryTree | RenewingTree | None = None

    @property
    def alive(self) -> bool:
        """Whether the node runs."""
        return self.host is not None and self.host.alive

    def power_on(self) -> SimulatedHost:
        """Begin a new life."""
        assert not self.alive, f"{self.name} runs already"
        self.host = self.cluster.world.start_host(self.name)
        return self.host

    async def open_metadata(self, host: Host, *, create: bool = False) -> ClusterMetadata:
        """Connect to the metadata store, over as many sessions as needed. Called from the node's own code.

        Raises:
            ConnectionLost: the store cannot be reached now.
        """
        self._tree = RenewingTree(await self._open_session(), self._open_session, host)
        return await ClusterMetadata.open(self._tree, host, create=create)

    async def _open_session(self) -> Tree:
        await self.cluster.store.wait_until_answering()
        return self.cluster.open_session(self.name)

    @property
    def session_id(self) -> int | None:
        """The node's live session with the metadata store."""
        if not self.alive or self._tree is None or self._tree.session_id not in self.cluster.store.sessions:
            return None
        return self._tree.session_id

    def expire_session(self) -> bool:
        """End the session of a living node with the metadata store. False when it has none."""
        session_id = self.session_id
        if session_id is None:
            return False
        self.cluster.store.expire(session_id)
        return True

    async def restart(self) -> None:
        """Allow the node to come back; its keeper starts it."""
        self.allowed.set()

    def crash(self, *, silent: bool = False, keep_unsynced: bool = False) -> None:
        """Kill the node; see `SimulatedHost.crash`. Its session ends some time later. It stays down until `restart`."""
        if self.host is None or not self.host.alive:
            return
        self.crashes += 1
        self.allowed.clear()
        self.host.crash(silent=silent, keep_unsynced=keep_unsynced)
        if self._tree is not None:
            self.cluster.expire_later(self._tree.session_id)
            self._tree = None


@dataclass
class FailureExcuse:
    """A period in which a bookie may rightly end by itself or refuse to start, both ends included."""

    from_s: float
    refused_writes: int
    """Count of writes that its disk had refused at the start."""
    failed_syncs: int
    until_s: float = inf


class BookieNode(SimulatedNode):
    """A bookie over all its lives.

    A fault of its disk excuses its failures while it lasts, and those that follow from it. If a sync failed or the bookie went down, the
    excuse holds until it has started again on a disk without faults. If only writes were refused, it holds for `AFTERMATH_S`. A fault
    without effect excuses nothing. Rot is permanent, and so is its excuse.
    """

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.bookie: Bookie | None = None
        self.rotten = ""
        """How its synced data was destroyed. It may lack entries, and may refuse to start for ever."""
        self.lost = ""
        """Why it stays down for the rest of the run."""
        self.wiped = ""
        """How it lost its disks. It is another incarnation since, and must not deny entries that it may have held before."""
        self.intact_from_s = 0.0
        """Time from which it keeps data like any other bookie: when it got empty disks."""
        self.id_bound = 0
        """Ids of ledgers below this were drawn before it got empty disks, whenever these ledgers were made."""
        self.under_repair = False
        """Its disks or its index are being replaced: only that program starts it."""
        self.serves_since_s = 0.0
        """When it has started last."""
        self._excuses: list[FailureExcuse] = []
        self._serves = False
        self._metadata: ClusterMetadata | None = None
        self._failure_watch: asyncio.Task[None] | None = None

    @property
    def serves(self) -> bool:
        """Whether it has started and neither crashed nor failed since."""
        return self._serves

    @property
    def may_fail(self) -> bool:
        """Whether a fault of its disk excuses it now, so that ending by itself is no violation."""
        return self.may_fail_at(self.cluster.world.loop.time())

    def may_fail_at(self, time_s: float) -> bool:
        """`may_fail` for a past moment."""
        return any(excuse.from_s <= time_s <= excuse.until_s for excuse in self._excuses)

    def excuse_failures(self) -> None:
        """A fault strikes its disk now."""
        disk = self.cluster.world.disk(self.name)
        self._excuses.append(FailureExcuse(self.cluster.world.loop.time(), disk.refused_writes, disk.failed_syncs))

    def end_excuses(self) -> None:
        """A fault that struck it has ended, perhaps one of its disk: a fault that it has survived excuses nothing any more."""
        if self._disk_is_struck() or not self._serves:
            return
        disk, now = self.cluster.world.disk(self.name), self.cluster.world.loop.time()
        for excuse in self._excuses:
            # A bookie that lost a sync must fail, however late the worker reports it.
            if excuse.until_s == inf and disk.failed_syncs == excuse.failed_syncs:
                excuse.until_s = now + (AFTERMATH_S if disk.refused_writes > excuse.refused_writes else 0.0)

    def _disk_is_struck(self) -> bool:
        disk = self.cluster.world.disk(self.name)
        return bool(self.rotten or disk.is_filled or disk.failing_syncs)

    def _extend_excuses(self) -> None:
        """It goes down, or cannot start, while it is excused: the excuse holds until it has come back."""
        now = self.cluster.world.loop.time()
        for excuse in self._excuses:
            if excuse.from_s <= now <= excuse.until_s:
                excuse.until_s = inf

    def crash(self, *, silent: bool = False, keep_unsynced: bool = False) -> None:
        if self.alive:
            self._serves = False
            self._extend_excuses()
        super().crash(silent=silent, keep_unsynced=keep_unsynced)

    async def start(self) -> None:
        """Start the bookie and return when it serves.

        Raises:
            NodeDied: it was crashed meanwhile. TriplicateError, OSError: it does not start.
        """
        self.bookie = None
        disk, began_s = self.cluster.world.disk(self.name), self.cluster.world.loop.time()
        failed_syncs = disk.failed_syncs
        host = self.power_on()
        await host.call(self._boot(host.port), name="start bookie")
        assert self.bookie is not None
        self._serves = True
        self.serves_since_s = self.cluster.world.loop.time()
        # A fault during the start concerns this life, which may not have noticed it yet.
        if not self._disk_is_struck() and disk.failed_syncs == failed_syncs:
            for excuse in self._excuses:
                if excuse.from_s <= began_s:
                    excuse.until_s = min(excuse.until_s, self.cluster.world.loop.time())
        self._failure_watch = host.start(self._watch_failure(self.bookie), name="watch failure")

    async def restart(self) -> None:
        """Start it, again where it cannot start for the moment. No effect on one that runs, is lost, is held, or is being started
        elsewhere. A crash may interrupt it."""
        await super().restart()
        for _ in range(self.cluster.options.starts_max):
            if self.alive or self.lost or self.under_repair:
                return
            try:
                await self.start()
            except NodeDied:
                # The fault that struck it restarts it.
                return
            except (TriplicateError, OSError) as error:
                self.crash(keep_unsynced=True)
                if not self._may_start_later(error):
                    return
                await asyncio.sleep(self.cluster.options.start_again_s)
                self.allowed.set()
        self._mark_lost(f"could not start {self.cluster.options.starts_max} times")

    def _may_start_later(self, error: TriplicateError | OSError) -> bool:
        """Whether the obstacle to its start is temporary. If not, it is lost, which is a failure unless its disk is rotten."""
        self.cluster.world.recorder.fact(self.name, "bookie.start_failed", {"error": str(error), "kind": type(error).__name__})
        if self.lost:
            return False
        if isinstance(error, MetadataError | TimeoutError) and not isinstance(error, WrongCluster):
            return True
        if self.may_fail and not self.rotten:
            return True
        self._mark_lost(str(error))
        return False

    def _mark_lost(self, reason: str) -> None:
        self.lost = reason
        self.cluster.world.recorder.fact(self.name, "bookie.lost", {"reason": reason})
        if not self.rotten:
            self.cluster.failures.append(f"{self.name} does not start: {reason}")

    async def stop(self) -> None:
        """Stop the bookie in order. Its node lives on, empty, until it is crashed, so that leaks can be seen.

        Raises:
            NodeDied: it was crashed meanwhile.
        """
        if self.host is None or not self.host.alive or self.bookie is None:
            return
        try:
            await self.host.call(self._stop_bookie(self.bookie), name="stop bookie")
        except (TriplicateError, OSError) as error:
            self.cluster.world.recorder.fact(self.name, "bookie.stop_failed", {"error": str(error)})
            if not self.may_fail:
                self.cluster.failures.append(f"{self.name} does not stop in order: {error}")

    @property
    def settings(self) -> BookieSettings:
        """The settings it is started with."""
        settings, machines = self.cluster.options.bookie_settings(self.name), self.cluster.options.machines
        if self.name not in machines:
            return settings
        return replace(settings, advertised_address=machines[self.name], port=settings.port + list(machines).index(self.name))

    def make_directories(self) -> None:
        """Mount empty disks at its directories."""
        for directory in (*self.settings.journal_directories, *self.settings.ledger_directories):
            self.cluster.world.disk(self.name).make_directory(directory)

    async def run_tool(self, program: Callable[[Host, ClusterMetadata], Awaitable[Result]], name: str) -> Result:
        """Run an operator's program on its machine while it is down. The program's process ends with it.

        Raises:
            NodeDied: the machine was crashed meanwhile. Errors of the program.
        """
        self.bookie = None
        host = self.power_on()
        try:
            return await host.call(self._with_metadata(host.port, program), name=name)
        finally:
            if host.alive:
                self.crash(keep_unsynced=True)

    async def _with_metadata(self, host: Host, program: Callable[[Host, ClusterMetadata], Awaitable[Result]]) -> Result:
        metadata = await self.open_metadata(host)
        try:
            return await program(host, metadata)
        finally:
            await metadata.aclose()

    async def _boot(self, host: Host) -> None:
        async with asyncio.timeout(self.cluster.options.restart_timeout_s):
            self._metadata = await self.open_metadata(host)
            bookie = await Bookie.start(host, self.settings, self._metadata)
            if self.cluster.options.bookie_chores is not None:
                self.cluster.options.bookie_chores(host, self._metadata, bookie)
            self.bookie = bookie

    async def _stop_bookie(self, bookie: Bookie) -> None:
        assert self._metadata is not None
        if self._failure_watch is not None:
            self._failure_watch.cancel()
        try:
            await bookie.stop()
        finally:
            await self._metadata.aclose()

    async def _watch_failure(self, bookie: Bookie) -> None:
        """Watch for a failure of the bookie, which ends its process; its supervisor starts it again."""
        await bookie.wait_failed()
        self._serves = False
        self._extend_excuses()
        loop, host = self.cluster.world.loop, self.host
        assert host is not None
        loop.call_soon(lambda: loop.start_task(self._restart_after_failure(host), name=f"supervise {self.name}"), context=context_of(None))

    async def _restart_after_failure(self, failed: SimulatedHost) -> None:
        await asyncio.sleep(self.cluster.options.start_again_s)
        if failed.alive and not self.cluster.stopping:
            self.crash(keep_unsynced=True)
            await self.restart()


class ClientNode(SimulatedNode):
    """A process that uses the client. Each `run` is one life of it, or continues the present one."""

    async def run(self, program: Callable[[Client], Awaitable[Result]]) -> Result:
        """Run a program with a client of its own, as a process that ends with it.

        Raises:
            NodeDied: the node was crashed meanwhile.
        """
        host = self.host if self.alive else self.power_on()
        assert host is not None
        return await host.call(self._with_client(host.port, program), name=self.name)

    async def _with_client(self, host: Host, program: Callable[[Client], Awaitable[Result]]) -> Result:
        metadata = await self._open_with_retries(host)
        try:
            async with Client(host, metadata, self.cluster.options.client_settings) as client:
                return await program(client)
        finally:
            await metadata.aclose()

    async def _open_with_retries(self, host: Host) -> ClusterMetadata:
        """Open the metadata as a program that ends when it cannot reach them, and is started again."""
        for _ in range(self.cluster.options.starts_max):
            try:
                return await self.open_metadata(host)
            except ConnectionLost:
                await asyncio.sleep(self.cluster.options.start_again_s)
        return await self.open_metadata(host)


class SimulatedCluster:
    """Bookies, clients and their metadata in one world.

    Args:
        world: where everything runs.
        options: sizes, settings, delays.
    """

    def __init__(self, world: World, options: ClusterOptions | None = None) -> None:
        self.world = world
        self.options = options or ClusterOptions()
        self.store = ReplicatedMemoryStore(SimulatedClock(world.loop, 0.0), self._call_later, world.rng("metadata servers"))
        self.store.fault = self._delay
        self.bookies = {name: BookieNode(self, name) for name in (f"bookie-{number + 1}" for number in range(self.options.bookies))}
        self.clients: dict[str, ClientNode] = {}
        self.others: dict[str, SimulatedNode] = {}
        """Nodes of other kinds, by name, added by the workload."""
        self.connections_lost = 0
        self.conflicts = 0
        """Count of writes that a rival made between another client's read and change of a node."""
        self.metadata_operations = 0
        self.failures: list[str] = []
        """Bookies that do not start or stop although no fault of their disk explains it."""
        self.ends: list[str] = []
        """Processes other than bookies that ended by themselves without an excuse. Bookies are judged by the faults of their disks."""
        self.cut_off: dict[str, int] = {}
        """Nodes that cannot reach the metadata store, with the number of faults that cut them off."""
        self.metadata_looks: list[Callable[[str, str, str], None]] = []
        """Called with each operation on its way to the metadata: its node, its name and its path. They may pause the node."""
        self.stopping = False
        self._owners: dict[int, str] = {}
        self._rival: ReplicatedMemoryTree | None = None
        self._rng = world.rng("metadata")

    async def start(self) -> None:
        """Initialise the cluster and start every bookie."""
        administrator = SimulatedNode(self, "administrator")
        host = administrator.power_on()
        await host.call(self._initialise(administrator, host.port), name="initialise")
        for bookie in self.bookies.values():
            if bookie.name in self.options.machines:
                self.world.network.share_machine(bookie.name, self.options.machines[bookie.name])
            bookie.make_directories()
            await bookie.start()

    async def _initialise(self, node: SimulatedNode, host: Host) -> None:
        metadata = await node.open_metadata(host, create=True)
        await metadata.aclose()

    def client(self, name: str) -> ClientNode:
        """Return the client node of this name; it is made on first use."""
        node = self.clients.get(name)
        if node is None:
            node = self.clients[name] = ClientNode(self, name)
        return node

    def node(self, name: str) -> SimulatedNode:
        """Return the node of this name, of any kind; a new client if there is none."""
        return self.bookies.get(name) or self.others.get(name) or self.client(name)

    def node_names(self) -> list[str]:
        """Names of all nodes: bookies, clients, others."""
        return [*self.bookies, *self.clients, *self.others]

    async def revive(self) -> None:
        """Allow every node to come back, and start every bookie that is down."""
        for node in [*self.bookies.values(), *self.clients.values(), *self.others.values()]:
            await node.restart()

    async def stop(self) -> None:
        """Stop every bookie in order."""
        self.stopping = True
        for bookie in self.bookies.values():
            await bookie.stop()
        if self._rival is not None:
            await self._rival.close()

    def report_end(self, name: str, error: BaseException, *, excuse: str = "") -> None:
        """Record that a process ended although it was neither killed nor stopped.

        Args:
            excuse: one of `EXCUSED_ENDS`; without one the end is a violation.
        """
        assert not excuse or excuse in EXCUSED_ENDS, f"there is no excuse {excuse!r}"
        self.world.recorder.fact(name, "process.ended", {"error": repr(error), "excuse": excuse})
        if not excuse:
            self.ends.append(f"{name} ended by itself at {self.world.loop.time():.6f}: {error!r}")

    def open_session(
        self, name: str, make: Callable[[ReplicatedMemoryStore], ReplicatedMemoryTree] = ReplicatedMemoryTree
    ) -> ReplicatedMemoryTree:
        """Open a node's session with the metadata store.

        Args:
            make: makes the session, where a node has a kind of its own.

        Raises:
            ConnectionLost: the node is cut off from the store.
        """
        if name in self.cut_off:
            raise ConnectionLost(f"{name} cannot reach the metadata store (simulated)")
        tree = make(self.store)
        self._owners[tree.session_id] = name
        return tree

    def owner_of(self, session_id: int) -> str:
        """Return the name of the node that opened a session with the metadata store."""
        return self._owners[session_id]

    @contextmanager
    def without_metadata(self, names: Sequence[str]) -> Iterator[None]:
        """Cut nodes off from the metadata store for the block."""
        for name in names:
            self.cut_off[name] = self.cut_off.get(name, 0) + 1
        try:
            yield
        finally:
            for name in names:
                self.cut_off[name] -= 1
                if not self.cut_off[name]:
                    del self.cut_off[name]

    def _call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        # In the world's own context: the node that made the change may die before it has reached every server.
        return self.world.loop.call_later(delay_s, callback, context=context_of(None))

    def expire_later(self, session_id: int) -> None:
        """End a dead node's session after its timeout."""
        delay_s = self._rng.uniform(self.options.session_low_s, self.options.session_high_s)
        # In the world's own context: the crash may come from within the node's code, whose timers are void from then on.
        self.world.loop.call_later(delay_s, self.store.expire, session_id, context=context_of(None))

    def find_leaks(self) -> list[str]:
        """Tasks, connections and timers that living nodes have left after everything was stopped and a moment has passed."""
        found: list[str] = []
        current = asyncio.current_task()
        found += [f"task {task.get_name()}" for task in self.world.loop.pending_tasks() if task is not current]
        found += [f"timer {handle!r}" for handle in self.world.loop.pending_timers() if not delivers_to_nobody(handle.callback)]
        for transport in self.world.network.open_transports():
            found.append(f"connection of {transport.life.name} to {transport.get_extra_info('peername')[0]}")
        found += [f"listener {name}:{port}" for name, port in self.world.network.open_listeners()]
        return found

    def _delay(self, session_id: int, operation: str, path: str) -> InjectedFault | None:
        if self._rival is not None and session_id == self._rival.session_id:
            return None
        self.metadata_operations += 1
        options, owner = self.options, self._owners.get(session_id, "")
        for look in list(self.metadata_looks):
            look(owner, operation, path)
        low, high = options.metadata_delay_low_s * options.metadata_slowness, options.metadata_delay_high_s * options.metadata_slowness
        fault = InjectedFault(delay_before_s=self._rng.uniform(low, high), delay_after_s=self._rng.uniform(low, high))
        if owner in self.cut_off:
            self._lose_connection(fault, operation, path, before=True)
        elif options.metadata_loss_rate and self._rng.random() < options.metadata_loss_rate:
            self._lose_connection(fault, operation, path, before=self._rng.random() < 0.5)
        contended = options.metadata_conflict_rate and operation in ("set", "multi") and CONTENDED.search(path)
        if contended and self._rng.random() < options.metadata_conflict_rate:
            self.world.loop.call_soon(self._contend, path, context=context_of(None))
        return fault

    def _lose_connection(self, fault: InjectedFault, operation: str, path: str, *, before: bool) -> None:
        self.connections_lost += 1
        lost = ConnectionLost(f"{operation} {path}: the connection was lost (simulated)")
        if before:
            fault.raise_before = lost
        else:
            fault.raise_after = lost

    def _contend(self, path: str) -> None:
        """Write a node's own data to it once more before a change in flight arrives: the version rises, the content stays."""
        if self._rival is None:
            self._rival = ReplicatedMemoryTree(self.store)
        self.world.loop.start_task(self._write_again(self._rival, path), name="rival")

    async def _write_again(self, rival: ReplicatedMemoryTree, path: str) -> None:
        try:
            data, stat = self.store.get(path)
            await rival.set(path, data, stat.version)
            self.conflicts += 1
        except (NoNode, BadVersion):
            return
        except SessionExpired:
            # The metadata was silent for longer than a session lasts.
            if self._rival is rival:
                self._rival = None
