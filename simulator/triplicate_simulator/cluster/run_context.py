"""What a play has to work with: the world, the cluster, the history, and actors that come back after their node was struck down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any

from triplicate.client import Client
from triplicate.sim.host import NodeDied, World
from triplicate_simulator.checkers import History, Wiped
from triplicate_simulator.cluster.plan import Plan
from triplicate_simulator.cluster.simulated_cluster import ClientNode, SimulatedCluster

PROGRESS_S = 120.0
"""Once faults have stopped, everybody must be done within this virtual time."""


class RunContext:
    """One run's surroundings, shared by its play, its faults and its actors."""

    def __init__(self, world: World, cluster: SimulatedCluster, plan: Plan) -> None:
        self.world = world
        self.cluster = cluster
        self.plan = plan
        self.history = History()
        self.further_histories: dict[str, History] = {}
        """Histories that are judged each by itself, by the name of what they are about; where a play has several of a thing."""
        self.unknown: dict[str, int] = {}
        """Outcomes that stayed unknown, by the name of the error."""
        self.problems: list[str] = []
        """What went wrong beside the history: no progress, leaks, assertions of the actors."""
        self.struck: dict[str, int] = {}
        """How often each kind of fault struck something."""
        self.quiet = asyncio.Event()
        """Set when the faults are over and every node may run: from now on everybody must make progress."""
        self.refused_starts = 0
        """How often a bookie refused, as it must, to start on disks that had been emptied."""
        self.deadline_s = float("inf")
        """Set with `quiet`: when everybody must be done."""

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return self.world.loop.time()

    @property
    def lost_bookies(self) -> dict[str, str]:
        """Bookies that stay down for the rest of the run, and why: their disks are rotten, and they rightly refuse to start. Nobody may
        wait for an answer of theirs, and copies of theirs are missing by right."""
        return {name: bookie.lost for name, bookie in self.cluster.bookies.items() if bookie.lost}

    @property
    def rotten_bookies(self) -> dict[str, str]:
        """Bookies whose synced data has rotted. What they hold is counted, not judged: they may answer with errors, or no longer know an
        entry. Those in `lost_bookies` are among them."""
        return {name: bookie.rotten for name, bookie in self.cluster.bookies.items() if bookie.rotten}

    @property
    def destroyed_bookies(self) -> dict[str, float]:
        """Bookies that lost data which they had synced, by rot or with their disks, with the time from which on they hold what they are
        given as any other does; infinite where they never do again. At most ack quorum - 1."""
        bookies = self.cluster.bookies.items()
        return {name: inf if bookie.rotten else bookie.whole_s for name, bookie in bookies if bookie.rotten or bookie.wiped}

    def note_wiped(self, name: str) -> None:
        """A bookie's disks are gone, with all that it held."""
        self.history.add(Wiped(self.time(), name))

    def chance(self, *purpose: object) -> random.Random:
        """A random stream of its own."""
        return self.world.chance("workload", *purpose)

    def note_unknown(self, error: BaseException) -> None:
        """Count an error that says nothing about what was asked."""
        name = type(error).__name__
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def strike(self, kind: str, **facts: object) -> None:
        """Count a fault that struck, and enter it into the timeline."""
        self.announce(kind, **facts)
        self.count_strike(kind)

    def announce(self, kind: str, **facts: object) -> None:
        """Enter into the timeline that a fault begins of which only its end will tell whether it struck something."""
        self.world.recorder.fact("world", "fault." + kind, facts)

    def count_strike(self, kind: str) -> None:
        """Count a fault that has struck something."""
        self.struck[kind] = self.struck.get(kind, 0) + 1

    def keep(self, name: str, program: Callable[[Client], Awaitable[Any]]) -> asyncio.Task[None]:
        """Run a program with a client on its own node until it returns; anew in each life of the node, should that be struck down.

        What the program must remember over its node's crashes, it keeps in itself: it is the world's memory, not the node's.
        """
        return self.world.loop.begin(self._keep(self.cluster.client(name), program), name=name)

    async def _keep(self, node: ClientNode, program: Callable[[Client], Awaitable[Any]]) -> None:
        while True:
            try:
                await node.run(program)
            except NodeDied:
                await node.allowed.wait()
            else:
                return

    async def by_deadline(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait for what must come to an end now that faults are over; who does not is a problem, and is cancelled."""
        for task in tasks:
            try:
                async with asyncio.timeout_at(self.deadline_s):
                    await task
            except TimeoutError:
                unknown = " ".join(f"{name}={count}" for name, count in self.unknown.items())
                self.problems.append(f"no progress: {task.get_name()} is not done {PROGRESS_S:.0f} s after faults have stopped ({unknown})")
