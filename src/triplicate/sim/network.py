"""TCP between simulated nodes: seeded delay, chunks cut at random bytes, partitions, resets inside a frame, hosts that are down.

A node's address is its name, or that of a machine that several nodes share. Bytes of one connection arrive in order or, once it breaks, not
at all; connections overtake each other. Protocols and transports have asyncio's own interfaces, so the code above runs unchanged.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import math
import random
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

from triplicate.errors import ArgumentError
from triplicate.runtime import Listener, fail, has_result, resolve
from triplicate.sim.recorder import Recorder
from triplicate.sim.transport import NetworkTiming, SimulatedConnection, SimulatedTransport
from triplicate.sim.virtual_loop import LIFE, Life, VirtualLoop, context_of

FIRST_FREE_PORT = 40_001


@dataclass
class _Listening:
    factory: Callable[[], asyncio.Protocol]
    context: contextvars.Context
    life: Life


class SimulatedNetwork:
    """The network of all nodes.

    Args:
        chance: makes a random stream for a purpose. Each link and connection has its own.
    """

    def __init__(
        self, loop: VirtualLoop, rng: Callable[[str], random.Random], recorder: Recorder, *, timing: NetworkTiming | None = None
    ) -> None:
        self.loop = loop
        self.recorder = recorder
        self.timing = timing or NetworkTiming()
        self.connections: dict[int, SimulatedConnection] = {}
        """Connections that at least one end still refers to."""
        self.fault_counts: dict[str, int] = {}
        """Count of faults that had an effect, by kind."""
        self.blocked: dict[tuple[str, str], int] = {}
        """Blocked directions (from, to), with the number of blocks in effect."""
        self.torn = 0
        """Breaks inside the bytes of one write, so that the receiver has a part of them."""
        self.overtaken = 0
        """Writes that arrived at a node before earlier ones of other connections."""
        self.tears: dict[tuple[str, str | None], int] = {}
        """Connections to be broken at their next write; see `reset_at_next_write`."""
        self._rng = rng
        self._listening: dict[tuple[str, int], _Listening] = {}
        self._machines: dict[str, str] = {}
        """The shared machine of each node that has one."""
        self._nodes: dict[tuple[str, int], str] = {}
        """The node to which each port of a machine belongs."""
        self._ports: dict[str, int] = {}
        self._silent: dict[str, None] = {}
        self._factors: dict[tuple[str, str], float] = {}
        self._slowness: dict[tuple[str, str], float] = {}
        self._more_s: dict[tuple[str, str], float] = {}
        self._last_arrival: dict[str, float] = {}
        self._opened = 0

    def port(self, life: Life) -> NodeNetwork:
        """Return the network port of one life of a node."""
        return NodeNetwork(self, life)

    def share_machine(self, name: str, machine: str) -> None:
        """Put a node on a machine that it shares with others: peers reach its listeners also under the machine's name.

        A port of the machine belongs to the first node that listens at it.
        """
        self._machines[name] = machine

    # Faults.

    def block(self, source: str, target: str) -> None:
        """Hold all traffic from one node to another, one way, until `unblock`. Blocks nest: each needs its own unblock."""
        self.blocked[source, target] = self.blocked.get((source, target), 0) + 1
        self._count_fault("block", source, target)

    def partition(self, group: Sequence[str], others: Sequence[str]) -> None:
        """Block both directions between the nodes of two groups, until `heal` of the same groups. Nests as blocks do.

        Raises:
            ArgumentError: a node is in both groups.
        """
        for source, target in _across(group, others):
            self.blocked[source, target] = self.blocked.get((source, target), 0) + 1
        self._count_fault("partition", " ".join(group), " ".join(others))

    def heal(self, group: Sequence[str], others: Sequence[str]) -> None:
        """Undo one `partition`. Held traffic arrives in order."""
        for source, target in _across(group, others):
            self.unblock(source, target)

    def unblock(self, source: str, target: str) -> None:
        """Undo one block. Held traffic arrives in order."""
        left = self.blocked.get((source, target), 0) - 1
        if left > 0:
            self.blocked[source, target] = left
            return
        self.blocked.pop((source, target), None)
        self.recorder.note("net.unblock", source, target)
        for connection in list(self.connections.values()):
            connection.wake(source, target)

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether traffic from one node to another is blocked."""
        return (source, target) in self.blocked

    def slow(self, source: str, target: str, factor: float, *, more_s: float = 0.0) -> None:
        """Multiply the delays from one node to another, and add a time; 1 and 0 are normal."""
        self._slowness[source, target] = factor
        self._more_s[source, target] = more_s
        self._count_fault("slow", source, target)

    def reset(self, name: str, other: str | None = None) -> int:
        """Break the connections of a node (with one other), each direction at a random byte. Returns how many were broken."""
        struck = 0
        for connection in list(self.connections.values()):
            if connection.touches(name) and (other is None or connection.touches(other)) and connection.break_off():
                struck += 1
        if struck:
            self._count_fault("reset", name, other or "*")
        return struck

    def reset_at_next_write(self, name: str, other: str | None = None) -> None:
        """Break the next connection of a node (with one other) that carries a write of more than one byte, inside that write.

        `reset` mostly finds connections idle; this method cuts a frame whenever the node sends or receives one.
        """
        self.tears[name, other] = self.tears.get((name, other), 0) + 1
        self.recorder.note("net.tear", name, other)

    def consume_tear(self, source: str, target: str) -> bool:
        """Whether the write that just began on a connection is to be torn. Each call consumes one order."""
        for key in ((source, target), (target, source), (source, None), (target, None)):
            left = self.tears.get(key, 0)
            if left:
                self.tears[key] = left - 1
                if left == 1:
                    del self.tears[key]
                return True
        return False

    def tear(self, connection: SimulatedConnection) -> None:
        """Break a connection inside its last write; called right after that write."""
        if connection.break_off(inside=True):
            self._count_fault("reset_at_write", connection.client.life.name, connection.server.life.name)

    def host_down(self, life: Life, *, silent: bool) -> None:
        """Remove a node. Peers get a reset or, when `silent` (its power failed), nothing until it is up again."""
        for key in [key for key, listening in self._listening.items() if listening.life is life]:
            del self._listening[key]
        if silent:
            self._silent[life.name] = None
        for connection in list(self.connections.values()):
            connection.mark_dead(life, silent=silent)
        self._count_fault("host_down_silently" if silent else "host_down", life.name, "*")

    def host_up(self, name: str) -> None:
        """A machine is up: peers that still hold a connection to its former life get a reset."""
        self._silent.pop(name, None)
        for connection in list(self.connections.values()):
            if connection.touches(name):
                connection.reset_by_new_host(name)

    # For connections.

    def delay(self, link: tuple[str, str], rng: random.Random) -> float:
        """Draw one delay in seconds, from a node to a node."""
        factor = self._factors.get(link)
        if factor is None:
            # The cube keeps most links near 1 and makes a few really slow.
            spread = self._rng(f"link {link[0]} {link[1]}").random() ** 3
            factor = self._factors[link] = 1.0 + spread * (self.timing.link_factor_high - 1.0)
        # Exponential above a minimum, drawn as `expovariate` does.
        base = self.timing.delay_low_s - math.log(1.0 - rng.random()) * self.timing.delay_mean_s
        return base * factor * self._slowness[link] + self._more_s[link] if link in self._slowness else base * factor

    def open_transports(self) -> list[SimulatedTransport]:
        """Ends that belong to a living node and are not closed, oldest first."""
        ends = [end for connection in self.connections.values() for end in (connection.client, connection.server)]
        return [end for end in ends if end.life.alive and not end.lost]

    def open_listeners(self) -> list[tuple[str, int]]:
        """Addresses that accept connections."""
        return [address for address, listening in self._listening.items() if listening.life.alive]

    # Listening and connecting, for `NodeNetwork`.

    def listen(self, life: Life, factory: Callable[[], asyncio.Protocol], port: int) -> tuple[str, int]:
        if port == 0:
            port = self._ports.get(life.name, FIRST_FREE_PORT)
            self._ports[life.name] = port + 1
        address = (life.name, port)
        shared = (self._machines.get(life.name, life.name), port)
        if self._nodes.setdefault(shared, life.name) != life.name:
            raise OSError(errno.EADDRINUSE, "address already in use", f"{shared[0]}:{port}, of {self._nodes[shared]}")
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, "address already in use", f"{life.name}:{port}")
        self._listening[address] = _Listening(factory, context_of(life), life)
        self.recorder.note("net.listen", life.name, port)
        return address

    def close_listener(self, life: Life, address: tuple[str, int]) -> None:
        listening = self._listening.get(address)
        if listening is not None and listening.life is life:
            del self._listening[address]

    def dial(self, life: Life, context: contextvars.Context, address: tuple[str, int], answer: asyncio.Future[SimulatedTransport]) -> None:
        """Send the first packet of a connection. `answer` receives the client's end or an OSError."""
        address = (self._nodes.get(address, address[0]), address[1])
        self._opened += 1
        number = self._opened
        rng = self._rng(f"connection {number}")
        self.loop.call_later(
            self.delay((life.name, address[0]), rng),
            self._arrive,
            number,
            rng,
            life,
            context,
            address,
            answer,
            context=context_of(None),
        )

    def _arrive(
        self,
        number: int,
        rng: random.Random,
        life: Life,
        context: contextvars.Context,
        address: tuple[str, int],
        answer: asyncio.Future[SimulatedTransport],
    ) -> None:
        if answer.done() or not life.alive:
            return
        source, target = life.name, address[0]
        if self.is_blocked(source, target) or self.is_blocked(target, source) or target in self._silent:
            error = TimeoutError(errno.ETIMEDOUT, "connection timed out", f"{target}:{address[1]}")
            self.loop.call_later(self.timing.connect_timeout_s, _resolve_connect, answer, error)
            return
        back_s = self.delay((target, source), rng)
        listening = self._listening.get(address)
        if listening is None:
            refusal = ConnectionRefusedError(errno.ECONNREFUSED, "connection refused", f"{target}:{address[1]}")
            self.loop.call_later(back_s, _resolve_connect, answer, refusal)
            return
        capacity = rng.randrange(self.timing.buffer_low_bytes, self.timing.buffer_high_bytes + 1)
        connection = SimulatedConnection(self, number, rng, capacity)
        client = SimulatedTransport(connection, life, context, (source, FIRST_FREE_PORT + 10_000 + number), address)
        server = SimulatedTransport(connection, listening.life, listening.context, address, client.own_address)
        connection.join(client, server)
        self.connections[number] = connection
        self.recorder.note("net.open", number, source, address)
        self.loop.call_soon(_accept, connection.server, listening.factory, context=listening.context)
        self.loop.call_later(back_s, _resolve_connect, answer, connection.client)

    def remove(self, connection: SimulatedConnection) -> None:
        """Remove a connection whose ends are both closed or dead."""
        self.connections.pop(connection.number, None)

    def written(self, target: str, arrives_at: float) -> None:
        """Count a write that overtakes an earlier one on its way to the same node."""
        if arrives_at < self._last_arrival.get(target, 0.0):
            self.overtaken += 1
        else:
            self._last_arrival[target] = arrives_at

    def delivered(self, number: int, target: str, data: bytes) -> None:
        """Record one delivery; it is part of the run's digest."""
        self.recorder.note("net", number, target, len(data), crc32(data))

    def _count_fault(self, kind: str, source: str, target: str) -> None:
        self.fault_counts[kind] = self.fault_counts.get(kind, 0) + 1
        self.recorder.note("net." + kind, source, target)


class NodeNetwork:
    """`runtime.ports.Network` for one life of a node. Peers find a listener under the node's name, not under the host that it requested."""

    def __init__(self, network: SimulatedNetwork, life: Life) -> None:
        self._network = network
        self._life = life

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        self._life.check()
        context = contextvars.copy_context()
        context.run(LIFE.set, self._life)
        target = self._life.name if host in ("localhost", "127.0.0.1", "::1") else host
        answer: asyncio.Future[SimulatedTransport] = self._network.loop.create_future()
        self._network.dial(self._life, context, (target, port), answer)
        try:
            transport = await answer
        except asyncio.CancelledError:
            if has_result(answer):
                answer.result().abort()
            raise
        if transport.lost:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset", f"{target}:{port}")
        protocol = factory()
        transport.start(protocol)
        return transport, protocol

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        self._life.check()
        return SimulatedListener(self._network, self._life, self._network.listen(self._life, factory, port))

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        """The same connection: TLS changes no order of events that the simulator decides, and its handshake draws on real randomness."""
        assert not received, "no bytes belong to a handshake here: they would be lost"
        self._life.check()
        if transport.is_closing():
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        return transport


class SimulatedListener:
    """`runtime.ports.Listener`."""

    def __init__(self, network: SimulatedNetwork, life: Life, address: tuple[str, int]) -> None:
        self._network = network
        self._life = life
        self._address = address

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    async def close(self) -> None:
        self._network.close_listener(self._life, self._address)


def _across(group: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    """Every ordered pair of nodes with one in each group."""
    both = [name for name in group if name in others]
    if both:
        raise ArgumentError(f"a partition divides nodes; {', '.join(both)} cannot be on both of its sides")
    return [pair for name in group for other in others for pair in ((name, other), (other, name))]


def _accept(transport: SimulatedTransport, factory: Callable[[], asyncio.Protocol]) -> None:
    if not transport.lost:
        transport.start(factory())


def _resolve_connect(answer: asyncio.Future[SimulatedTransport], outcome: SimulatedTransport | OSError) -> None:
    if answer.done():
        # The caller gave up meanwhile: its connection is closed, as the kernel does with a descriptor that no process holds.
        if isinstance(outcome, SimulatedTransport):
            outcome.abort()
    elif isinstance(outcome, OSError):
        fail(answer, outcome, is_logged=True)
    else:
        resolve(answer, outcome)
