"""Replicas of one kind, databases or stores, that are dropped and made again under their name while operations hang."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.sim.host import NodeDied
from triplicate_simulator.checkers.recreation_rules import NextLifeRead
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.recreation.held_nodes import AfterTime, AtMetadata
from triplicate_simulator.workloads.recreation.recreation import LateOperation, NameHolder, Recreation
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer

RECREATED = "recreated"
"""The name."""
LEADER_S = 20.0
"""Time for the nodes to host and to lead it."""
POLL_S = 0.05
RECORDS = 3
APPEND_S = 0.006
"""A statement is on its way to the log for about this time."""
HANGS_S = (0.3, 1.0, 3.0, 6.0)
"""For how long a node of the cluster stands still. Making the next replica takes about the shortest time."""
FOLLOWING_SKIP = 12
"""A node that begins to host a replica makes about as many operations on its metadata."""


class ReplicaRecreation(Recreation):
    """The part that databases and stores share."""

    KIND: ClassVar[str]
    LATE_S = (0.0, 1.0, 6.0)
    FAILURES = (TriplicateError,)

    def __init__(self, context: RunContext, servers: Mapping[str, DatabaseServer]) -> None:
        super().__init__(context)
        self.servers = servers
        self.first: NameHolder | None = None
        """The one on which an operation hangs."""
        self._lives = 0
        self._late_done: bytes | None = None
        """The value of an operation that hung, once it was acknowledged."""
        self._settled = asyncio.Event()
        """Set while no change that nodes follow is under way."""
        self._settled.set()

    # Nodes.

    @abstractmethod
    def hosted(self, server: DatabaseServer) -> Any:
        """The copy that the node hosts under the name: an object with `info` and `machine`; None for nothing."""

    @abstractmethod
    async def put(self, machine: Any, value: bytes) -> None:
        """Write a value, which may have been written before."""

    @abstractmethod
    async def values(self, machine: Any, *, leads: bool) -> tuple[bytes, ...]:
        """All values, sorted, linearizably or as the node's copy has them."""

    @abstractmethod
    async def make(self, client: Client) -> bytes:
        """Make an empty one. Returns its identity."""

    @abstractmethod
    async def read(self, client: Client) -> tuple[str | None, dict[str, str]]:
        """The identity and the properties of what has the name now."""

    def server_of(self, identity: str) -> DatabaseServer | None:
        """The node that leads the replica of this identity, as it believes."""
        for server in self.servers.values():
            hosted = self.hosted(server) if server.alive else None
            if hosted is not None and hosted.info.identity.hex() == identity and hosted.machine.is_leader:
                return server
        return None

    async def ask(self, server: DatabaseServer, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run a function with what a node hosts, as part of its process.

        Raises:
            NodeDied: it hosts nothing, or the process ends.
        """
        host, hosted = server.host, self.hosted(server) if server.alive else None
        if host is None or hosted is None:
            raise NodeDied(server.name)

        async def run() -> Any:
            return await work(hosted.machine)

        return await host.call(run(), name=f"client of the {self.KIND}")

    async def at_leader(self, identity: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do some work at the leader of the replica of this identity, with as many attempts as needed.

        Raises:
            TimeoutError: it was not done within `LEADER_S`.
        """
        async with asyncio.timeout(LEADER_S):
            while True:
                server = self.server_of(identity)
                if server is not None:
                    try:
                        return await self.ask(server, work)
                    except (TriplicateError, NodeDied) as error:
                        self.context.count_unknown(error)
                await asyncio.sleep(POLL_S)

    # Lives.

    async def settled(self) -> None:
        """Wait until a change that a node follows, which may begin late, is made."""
        async with asyncio.timeout(LEADER_S):
            await self._settled.wait()

    async def first_life(self, client: Client) -> None:
        await self.remove(client)
        self._late_done = None
        self.first = await self.write((await self.make(client)).hex())

    async def write(self, identity: str, *, is_first: bool = False) -> NameHolder:
        """Write to the replica of this identity.

        Args:
            is_first: whether it is the first one, which has got the name again.
        """
        self._lives += 1
        values = [b"life %d, record %d" % (self._lives, number) for number in range(RECORDS)]

        async def put_all(machine: Any) -> None:
            for value in values:
                await self.put(machine, value)

        await self.at_leader(identity, put_all)
        if not is_first or self.first is None:
            return NameHolder(identity, tuple(values))
        return NameHolder(identity, tuple(sorted((*self.first.acknowledged, *values))), (self._late_value(self._lives - 1),))

    async def judge(self, client: Client, life: NameHolder, *, is_last: bool) -> None:
        if self._late_done in life.possible:
            life = replace(life, acknowledged=tuple(sorted((*life.acknowledged, *life.possible))), possible=())
        found_id, properties = await self.read(client)
        if found_id != life.identity:
            self._note(life, found_id, (), properties)
            return
        self._note(life, found_id, await self.at_leader(life.identity, partial(self.values, leads=True)), properties)
        if not is_last:
            return
        for server in self.servers.values():
            self._note(life, found_id, await self._values_of_copy(server, life.identity), properties)

    async def _values_of_copy(self, server: DatabaseServer, identity: str) -> tuple[bytes, ...]:
        """The values of a node's copy, once it is as far as its leader."""
        async with asyncio.timeout(LEADER_S):
            while True:
                leader, hosted = self.server_of(identity), self.hosted(server) if server.alive else None
                is_there = leader is not None and hosted is not None and hosted.info.identity.hex() == identity
                if is_there and self._position(server) >= self._position(leader):
                    found: tuple[bytes, ...] = await self.ask(server, partial(self.values, leads=False))
                    return found
                await asyncio.sleep(POLL_S)

    def _position(self, server: DatabaseServer | None) -> int:
        hosted = None if server is None else self.hosted(server)
        return -1 if hosted is None else int(hosted.machine.position)

    def _note(self, life: NameHolder, found_id: str | None, found: tuple[bytes, ...], properties: Mapping[str, str]) -> None:
        name = f"{self.KIND} {RECREATED}"
        event = NextLifeRead(
            self.context.time(), name, life.identity, life.acknowledged, found_id, found, life.possible, life.properties, properties
        )
        self.context.history.add(event)
        facts = {"identity": life.identity, "found": found_id or "", "values": len(found)}
        self.context.world.recorder.fact("clients", f"{self.KIND}.nextliferead", facts)
        self.counts["recreated"] += 1

    # Operations that hang.

    def _late_value(self, life: int) -> bytes:
        """The value that an operation on a first life writes."""
        return b"life %d, late record" % life

    def draw_statement(self) -> LateOperation:
        """A change that a client sends to the leader, which stands still meanwhile."""
        assert self.first is not None, "an operation begins on it"
        server = self.server_of(self.first.identity) or next(iter(self.servers.values()))
        value = self._late_value(self._lives)

        async def run() -> None:
            try:
                async with asyncio.timeout(LEADER_S):
                    await self.ask(server, lambda machine: self.put(machine, value))
                self._late_done = value
            except (TriplicateError, NodeDied, TimeoutError) as error:
                self.context.count_unknown(error)

        return LateOperation(server.name, AfterTime(self.rng.uniform(0.0, APPEND_S)), run, self.rng.choice(HANGS_S))

    def draw_following(self, change: Callable[[Client], Awaitable[None]]) -> LateOperation:
        """A node that stands still while it follows a change: it ends its copy, or opens another one.

        Args:
            change: after which nodes host the first life again.
        """
        moment = AtMetadata(self.rng.randrange(FOLLOWING_SKIP), part=RECREATED)
        self._settled.clear()

        async def run() -> None:
            try:
                await self.on(self.LATE, change)
            finally:
                self._settled.set()

        return LateOperation(self.rng.choice(list(self.servers)), moment, run, self.rng.choice(HANGS_S))
