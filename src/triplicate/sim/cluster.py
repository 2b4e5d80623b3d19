"""A simulated cluster: the real bookies and clients on simulated hosts over one metadata store in memory.

A node is started, crashed and started again; its disk and its identity outlive its lives. The metadata store itself does not fail,
but answers with delay, and a node's session outlives its crash by a while, as with ZooKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.config import BookieSettings, ClientSettings
from triplicate.errors import ConnectionLost
from triplicate.metadata import ClusterMetadata, Fault, MemoryStore, MemoryTree
from triplicate.runtime import Host
from triplicate.sim.host import NodeDied, SimulatedClock, SimulatedHost, World
from triplicate.sim.loop import context_of

Result = TypeVar("Result")

KIB = 1024
JOURNAL_DIRECTORY = "/data/journal"
LEDGER_DIRECTORY = "/data/ledgers"


def small_bookie_settings(bookie_id: str) -> BookieSettings:
    """Settings under which a short run rolls journals, flushes and collects garbage many times."""
    return BookieSettings(
        bookie_id=bookie_id,
        journal_directories=(JOURNAL_DIRECTORY,),
        ledger_directories=(LEDGER_DIRECTORY,),
        advertised_address=bookie_id,
        journal_preallocate_bytes=64 * KIB,
        journal_file_bytes=256 * KIB,
        write_cache_bytes=128 * KIB,
        flush_interval_s=0.7,
        entry_log_bytes=128 * KIB,
        gc_interval_s=1.0,
    )


@dataclass
class ClusterOptions:
    """How a simulated cluster is set up."""

    bookies: int = 5
    bookie_settings: Callable[[str], BookieSettings] = small_bookie_settings
    client_settings: ClientSettings = field(default_factory=ClientSettings)
    metadata_loss_rate: float = 0.0
    """Share of metadata operations whose connection is lost, half of them after the operation was applied."""
    metadata_delay_low_s: float = 0.0002
    metadata_delay_high_s: float = 0.004
    session_low_s: float = 1.0
    session_high_s: float = 5.0
    """A dead node's session ends this long after its crash."""
    restart_patience_s: float = 60.0
    """A bookie that does not start within this time is a failure."""


class Node:
    """One named node over all its lives."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.host: SimulatedHost | None = None
        self.crashes = 0
        self.allowed = asyncio.Event()
        """Cleared while the node has been struck down and may not come back yet."""
        self.allowed.set()
        self._tree: MemoryTree | None = None

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
        """A session with the metadata store; called from the node's own code."""
        self._tree = MemoryTree(self.cluster.store)
        return await ClusterMetadata.open(self._tree, host, create=create)

    def expire_session(self) -> bool:
        """End the node's session with the metadata store although it lives; false when it has none."""
        if not self.alive or self._tree is None or self._tree.session_id not in self.cluster.store.sessions:
            return False
        self.cluster.store.expire(self._tree.session_id)
        return True

    async def restart(self) -> None:
        """Let the node come back; whoever keeps it running starts it."""
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


class BookieNode(Node):
    """A bookie over all its lives."""

    bookie: Bookie | None = None
    _metadata: ClusterMetadata | None = None

    async def start(self) -> None:
        """Start the bookie and return when it serves.

        Raises:
            NodeDied: it was crashed meanwhile.
        """
        self.bookie = None
        host = self.power_on()
        await host.call(self._boot(host.port), name="start bookie")

    async def restart(self) -> None:
        """Start it, unless it runs or somebody else starts it; another crash may interrupt that."""
        await super().restart()
        if not self.alive:
            with suppress(NodeDied):
                await self.start()

    async def stop(self) -> None:
        """End the bookie in order. Its node lives on, empty, until it is crashed: so what it leaves behind can be seen.

        Raises:
            NodeDied: it was crashed meanwhile.
        """
        if self.host is not None and self.host.alive and self.bookie is not None:
            await self.host.call(self._shut(self.bookie), name="stop bookie")

    async def _boot(self, host: Host) -> None:
        async with asyncio.timeout(self.cluster.options.restart_patience_s):
            self._metadata = await self.open_metadata(host)
            bookie = Bookie(host, self.cluster.options.bookie_settings(self.name), self._metadata, reopen=lambda: self.open_metadata(host))
            await bookie.start()
            self.bookie = bookie

    async def _shut(self, bookie: Bookie) -> None:
        assert self._metadata is not None
        await bookie.stop()
        await self._metadata.aclose()


class ClientNode(Node):
    """A process that uses the client. Each `run` is one life of it, or goes on in the present one."""

    async def run(self, program: Callable[[Client], Awaitable[Result]]) -> Result:
        """Run a program with a client of its own, as a process that ends with it.

        Raises:
            NodeDied: the node was crashed meanwhile.
        """
        host = self.host if self.alive else self.power_on()
        assert host is not None
        return await host.call(self._with_client(host.port, program), name=self.name)

    async def _with_client(self, host: Host, program: Callable[[Client], Awaitable[Result]]) -> Result:
        metadata = await self.open_metadata(host)
        try:
            async with Client(host, metadata, self.cluster.options.client_settings) as client:
                return await program(client)
        finally:
            await metadata.aclose()


class SimulatedCluster:
    """Bookies, clients and their metadata in one world.

    Args:
        world: where everything runs.
        options: sizes, settings, delays.
    """

    def __init__(self, world: World, options: ClusterOptions | None = None) -> None:
        self.world = world
        self.options = options or ClusterOptions()
        self.store = MemoryStore(SimulatedClock(world.loop, 0.0))
        self.store.fault = self._delay
        self.bookies = {name: BookieNode(self, name) for name in (f"bookie-{number + 1}" for number in range(self.options.bookies))}
        self.clients: dict[str, ClientNode] = {}
        self.others: dict[str, Node] = {}
        """Nodes of other kinds, by name, added by whoever makes them."""
        self.connections_lost = 0
        self._chance = world.chance("metadata")

    async def start(self) -> None:
        """Make the cluster and start every bookie."""
        administrator = Node(self, "administrator")
        host = administrator.power_on()
        await host.call(self._initialise(administrator, host.port), name="initialise")
        for name, bookie in self.bookies.items():
            for directory in (JOURNAL_DIRECTORY, LEDGER_DIRECTORY):
                self.world.disk(name).make_directory(directory)
            await bookie.start()

    async def _initialise(self, node: Node, host: Host) -> None:
        metadata = await node.open_metadata(host, create=True)
        await metadata.aclose()

    def client(self, name: str) -> ClientNode:
        """The client node of this name; made when first asked for."""
        node = self.clients.get(name)
        if node is None:
            node = self.clients[name] = ClientNode(self, name)
        return node

    def node(self, name: str) -> Node:
        """The node of this name, whatever its kind."""
        return self.bookies.get(name) or self.others.get(name) or self.clients[name]

    async def revive(self) -> None:
        """Start every bookie that is down."""
        for bookie in self.bookies.values():
            if not bookie.alive:
                await bookie.start()

    async def stop(self) -> None:
        """End every bookie in order."""
        for bookie in self.bookies.values():
            await bookie.stop()

    def expire_later(self, session_id: int) -> None:
        """End a dead node's session after its time."""
        delay_s = self._chance.uniform(self.options.session_low_s, self.options.session_high_s)
        # In the world's own context: the crash may be struck from within the node's code, whose timers are void from then on.
        self.world.loop.call_later(delay_s, self.store.expire, session_id, context=context_of(None))

    def find_leaks(self) -> list[str]:
        """What living nodes have left behind after everything was stopped and a moment has passed: tasks, connections, timers."""
        found: list[str] = []
        current = asyncio.current_task()
        found += [f"task {task.get_name()}" for task in self.world.loop.pending_tasks() if task is not current]
        found += [f"timer {handle!r}" for handle in self.world.loop.pending_timers()]
        for transport in self.world.network.open_transports():
            found.append(f"connection of {transport.life.name} to {transport.get_extra_info('peername')[0]}")
        found += [f"listener {name}:{port}" for name, port in self.world.network.open_listeners()]
        return found

    def _delay(self, session_id: int, operation: str, path: str) -> Fault:
        low, high = self.options.metadata_delay_low_s, self.options.metadata_delay_high_s
        fault = Fault(delay_before_s=self._chance.uniform(low, high), delay_after_s=self._chance.uniform(low, high))
        if self.options.metadata_loss_rate and self._chance.random() < self.options.metadata_loss_rate:
            self.connections_lost += 1
            lost = ConnectionLost(f"{operation} {path}: the connection was lost (simulated)")
            if self._chance.random() < 0.5:
                fault.raise_before = lost
            else:
                fault.raise_after = lost
        return fault
