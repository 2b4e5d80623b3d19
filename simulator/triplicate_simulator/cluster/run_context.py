"""The context of a run: the world, the cluster, the history, and programs that are restarted after their node was killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any

from triplicate.client import Client
from triplicate.sim.host import NodeDied, World
from triplicate_simulator.checkers.history import History
from triplicate_simulator.checkers.ledger_promises import Wiped
from triplicate_simulator.cluster.plan import Plan
from triplicate_simulator.cluster.simulated_cluster import ClientNode, SimulatedCluster

PROGRESS_S = 120.0
"""Once faults have stopped, every actor must finish within this virtual time."""


class RunContext:
    """The context of one run, shared by its workload, its faults and its actors."""

    def __init__(self, world: World, cluster: SimulatedCluster, plan: Plan) -> None:
        self.world = world
        self.cluster = cluster
        self.plan = plan
        self.history = History()
        self.further_histories: dict[str, History] = {}
        """Histories that are judged each by itself, by subject; for workloads that have several of a thing."""
        self.unknown: dict[str, int] = {}
        """Count of unknown outcomes, by the name of the error."""
        self.problems: list[str] = []
        """Failures other than violations of a checker: no progress, leaks, assertions of the actors."""
        self.struck: dict[str, int] = {}
        """Count of faults that had an effect, by kind."""
        self.faults_over = asyncio.Event()
        """Set when the faults are over and every node may run: from now on every actor must make progress."""
        self.lost_for_good_s: dict[str, float] = {}
        """When each bookie was lost that does not come back, with its disks."""
        self.refused_starts = 0
        """Count of bookies that refused, as they must, to start on emptied disks."""
        self.deadline_s = float("inf")
        """Set with `faults_over`: the time by which every actor must finish."""
        self.bears_loss: Callable[[], bool] = lambda: not self.destroyed_bookies
        """Whether one more bookie may lose its data now. A workload that makes lost copies again replaces it."""
        self.note_loss: Callable[[], None] = lambda: None
        """Called when bookies have lost their data for good, or their disks."""
        self.may_replace: Callable[[str], bool] = lambda name: True
        """Whether the disks of a bookie may be replaced now. A workload that takes bookies out replaces it."""
        self.companion_of: Callable[[str], str | None] = lambda name: None
        """The living bookie that shares the most ledgers with another, where the workload knows it."""

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return self.world.loop.time()

    @property
    def lost_bookies(self) -> dict[str, str]:
        """Bookies that stay down for the rest of the run, and why: their disks are rotten, and they rightly refuse to start. No actor may
        wait for their answers, and their copies may be missing."""
        return {name: bookie.lost for name, bookie in self.cluster.bookies.items() if bookie.lost}

    @property
    def rotten_bookies(self) -> dict[str, str]:
        """Bookies whose synced data has rotted, including those in `lost_bookies`. Their copies are counted, not judged: they may answer
        with errors, or no longer know an entry."""
        return {name: bookie.rotten for name, bookie in self.cluster.bookies.items() if bookie.rotten}

    @property
    def destroyed_bookies(self) -> dict[str, float]:
        """Bookies that lost synced data, by rot or with their disks, each with the time from which it keeps data like any other; infinite
        where it never does again. At most ack quorum - 1."""
        bookies = self.cluster.bookies.items()
        return {name: inf if bookie.rotten else bookie.intact_from_s for name, bookie in bookies if bookie.rotten or bookie.wiped}

    def note_wiped(self, name: str) -> None:
        """Record that a bookie's disks are gone, with all their data."""
        self.history.add(Wiped(self.time(), name))
        self.note_loss()

    def rng(self, *purpose: object) -> random.Random:
        """Return a random stream that nothing else draws from."""
        return self.world.rng("workload", *purpose)

    def count_unknown(self, error: BaseException) -> None:
        """Count an error that leaves the outcome of its operation unknown."""
        name = type(error).__name__
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def record_fault(self, kind: str, **facts: object) -> None:
        """Count a fault that had an effect, and add it to the timeline."""
        self.announce_fault(kind, **facts)
        self.count_fault(kind)

    def announce_fault(self, kind: str, **facts: object) -> None:
        """Add the start of a fault to the timeline. Whether it has an effect is known at its end only."""
        self.world.recorder.fact("world", "fault." + kind, facts)

    def count_fault(self, kind: str) -> None:
        """Count a fault that had an effect."""
        self.struck[kind] = self.struck.get(kind, 0) + 1

    def keep_running(self, name: str, program: Callable[[Client], Awaitable[Any]]) -> asyncio.Task[None]:
        """Run a program with a client on its own node until it returns; again in each life of the node after a kill.

        State that must survive crashes of the node is kept in the program object: it belongs to the world, not to the node.
        """
        return self.world.loop.start_task(self._keep(self.cluster.client(name), program), name=name)

    async def _keep(self, node: ClientNode, program: Callable[[Client], Awaitable[Any]]) -> None:
        while True:
            try:
                await node.run(program)
            except NodeDied:
                await node.allowed.wait()
            else:
                return

    async def finish_by_deadline(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait for tasks that must finish now that faults are over. A task that does not is a problem, and is cancelled."""
        for task in tasks:
            try:
                async with asyncio.timeout_at(self.deadline_s):
                    await task
            except TimeoutError:
                unknown = " ".join(f"{name}={count}" for name, count in self.unknown.items())
                self.problems.append(f"no progress: {task.get_name()} is not done {PROGRESS_S:.0f} s after faults have stopped ({unknown})")
