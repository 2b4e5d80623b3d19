"""Faults of the owners of logs: death, pause, or loss of their bookies, at any time or at a named point."""

from __future__ import annotations

import asyncio
import re

from triplicate.client import Client
from triplicate.errors import ConnectionLost
from triplicate.metadata import InjectedFault
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate.sim.virtual_loop import context_of
from triplicate_simulator.workloads.log.log_model import LOGS, UNKNOWN_OUTCOMES, WRITTEN, LogModel
from triplicate_simulator.workloads.recreation.held_nodes import pausing, wait_for

WRITING = ("log.recover_segment", "log.create_ledger", "log.head_change", "log.roll", "log.roll", "log.segment_header")
"""Fault points at which an owner, or a node about to become one, is struck."""
PUBLISHING = ("log.describe_ledger", "log.head_change", "log.discard")
"""Fault points at which a publisher is struck."""
ASKING = ("log.request", "log.request", "log.describe_ledger")
"""Fault points at which a publisher is struck that sends requests to a living writer."""
MOMENT_WAIT_S = 6.0
"""Time for which a node is watched for a fault point. If it does not reach the point it is struck at once."""
SUCCESSION_S = 8.0
"""Longest wait for another owner."""


class LostReplies:
    """Loses answers of the metadata store to changes of logs' heads and of publishers' state: applied, with unknown outcome.

    In some cases only the connection breaks, and the client's next attempt succeeds. In others the network between the client and the
    store fails at that moment and stays down, often for longer than the client retries: it must find out later what became of its change.
    """

    PATH = re.compile(rf"/logs/({'|'.join(LOGS)})(/publishers/[^/]+)?$")
    DOWN_SHARE, DOWN_S = 0.4, (2.0, 9.0)
    """How often, and how long, the client cannot reach the store after the loss. A change is retried for three to seven seconds."""

    def __init__(self, model: LogModel) -> None:
        self._model = model
        self._rng = model.rng("lost answers")
        self._left = 0
        self._outages: list[asyncio.Task[None]] = []
        store = model.context.cluster.store
        self._before = store.fault
        store.fault = self._fault

    async def lose(self, times: int) -> None:
        """Lose answers `times` times, spread over the time of the faults, now and then several in a row."""
        model = self._model
        for _ in range(times):
            await model.pause(self._rng.uniform(0.3, 1.5) * model.context.plan.duration_s / (times + 1))
            self._left = self._rng.choice([1, 1, 2, 4])
        self._left = 0
        for outage in self._outages:
            await outage

    def _fault(self, session_id: int, operation: str, path: str) -> InjectedFault | None:
        made = None if self._before is None else self._before(session_id, operation, path)
        if self._left and made is not None and made.raise_before is None and operation == "multi" and self.PATH.search(path):
            self._left -= 1
            self._model.count("answers_lost")
            made.raise_after = ConnectionLost(f"{operation} {path}: the answer was lost (simulated)")
            if self._rng.random() < self.DOWN_SHARE:
                outage = self._cut_off(self._model.context.cluster.owner_of(session_id), self._rng.uniform(*self.DOWN_S))
                # In the world's own context: the node whose operation this is may die meanwhile.
                task = self._model.context.world.loop.start_task(outage, name="metadata out of reach", context=context_of(None))
                self._outages.append(task)
        return made

    async def _cut_off(self, node: str, down_s: float) -> None:
        """Cut a node off from the metadata store. Its session outlives that."""
        self._model.count("metadata_out_of_reach")
        with self._model.context.cluster.without_metadata([node]):
            await self._model.pause(down_s)


class OwnerFaults:
    """Strikes nodes in turn and lets the other writers take over.

    Args:
        log: the log whose owner, or next owner, is struck.
        victims: nodes that use the log.
        moments: names of fault points.
    """

    def __init__(self, model: LogModel, name: str, log: str, victims: tuple[str, ...], moments: tuple[str, ...]) -> None:
        self._model = model
        self._log = log
        self._moments = moments
        self._victims = victims
        self._rng = model.rng(name)

    async def run(self, times: int) -> None:
        """Strike `times` times, spread over the time of the faults."""
        model, rng = self._model, self._rng
        for _ in range(times):
            await model.pause(rng.uniform(0.3, 1.5) * model.context.plan.duration_s / (times + 1))
            victim = model.owner.get(self._log) or rng.choice(self._victims)
            way = rng.choice(["kill", "kill", "pause", "pause", "pause", "cut", "alone"])
            if way in ("kill", "pause") and rng.random() < 0.7:
                victim = await self._at_moment(victim, way)
            if victim and not model.faults_are_over:
                await self._run_fault(victim, way)

    async def _at_moment(self, owner: str, way: str) -> str:
        """Wait until a node reaches a drawn fault point and strike it there. Empty if that was done, otherwise the node to be struck."""
        model, rng = self._model, self._rng
        moment = rng.choice(self._moments)
        struck: list[str] = []
        done = asyncio.Event()

        def spring(node: str) -> None:
            struck.append(node)
            self._kill_or_pause(node, way)
            done.set()

        target = owner if moment == "log.roll" else rng.choice(self._victims)
        trap = model.context.world.points.trap(moment, spring, node=target, skip=rng.randrange(2))
        await wait_for(done, MOMENT_WAIT_S)
        trap.cancel()
        if not struck:
            return target
        model.count("struck_at_moment")
        await self._revive(target, way)
        return ""

    async def _run_fault(self, victim: str, way: str) -> None:
        if way in ("cut", "alone"):
            await self._cut(victim, way)
        elif self._kill_or_pause(victim, way):
            await self._revive(victim, way)

    def _kill_or_pause(self, name: str, way: str) -> bool:
        """Kill or pause a node. False if it is down already."""
        model, host = self._model, self._model.context.cluster.client(name).host
        if host is None or not host.alive or host.paused:
            return False
        if way == "kill":
            model.count("owners_killed")
            model.context.cluster.client(name).crash(silent=True)
        else:
            model.count("owners_paused")
            host.pause()
        if self._log == WRITTEN:
            model.takeover_wanted.set()
        return True

    async def _revive(self, name: str, way: str) -> None:
        model, node = self._model, self._model.context.cluster.client(name)
        host = node.host
        if self._rng.random() < 0.5:
            await model.pause(self._rng.choice([0.2, 1.0, 3.0, 6.0]))
        else:
            await self._wait_for_successor(name)
        if way == "kill":
            await node.restart()
        elif host is not None:
            host.resume()

    async def _wait_for_successor(self, name: str) -> None:
        """Wait, within a limit, until another node has had the log for a moment."""
        model, until_s = self._model, self._model.time() + SUCCESSION_S
        while model.owner.get(self._log) in (None, name) and model.time() < until_s and not model.faults_are_over:
            await model.pause(0.1)
        await model.pause(self._rng.uniform(0.0, 1.5))

    async def _cut(self, victim: str, way: str) -> None:
        """Cut a node off from most bookies: its segment breaks. Alone with one of them it is killed, and that bookie is unreachable for a
        while."""
        model, rng = self._model, self._rng
        network, bookies = model.context.world.network, list(model.context.cluster.bookies)
        rng.shuffle(bookies)
        reached = bookies[: 1 if way == "alone" else rng.choice([1, 2])]
        lost = [bookie for bookie in bookies if bookie not in reached]
        for bookie in lost:
            network.block(victim, bookie)
        model.count("owners_cut_off")
        await model.pause(rng.uniform(1.0, 5.0))
        if way == "alone":
            self._kill_or_pause(victim, "kill")
            for node in self._victims:
                network.block(node, reached[0])
            await model.pause(rng.uniform(2.0, 5.0))
            for node in self._victims:
                network.unblock(node, reached[0])
        for bookie in lost:
            network.unblock(victim, bookie)
        await model.context.cluster.client(victim).restart()


async def kill_bookies(model: LogModel, times: int) -> None:
    """Kill enough bookies, `times` times, that no segment can continue or be created. Writers must recover when they are back."""
    rng, cluster = model.rng("bookies"), model.context.cluster
    for _ in range(times):
        await model.pause(rng.uniform(0.2, 1.5) * model.context.plan.duration_s / (times + 1))
        bookies = list(cluster.bookies.values())
        rng.shuffle(bookies)
        struck = [bookie for bookie in bookies if bookie.alive][: max(2, len(bookies) - model.load.ensemble_size + 1)]
        if model.faults_are_over:
            return
        for bookie in struck:
            bookie.crash(silent=False, keep_unsynced=rng.random() < 0.5)
        model.count("bookies_taken", len(struck))
        # Writers tolerate the loss for a moment; then their segment is broken.
        await model.pause(rng.choice([2.0, 4.0, 7.0]))
        for bookie in struck:
            await bookie.restart()


class RacingSweeper:
    """Sweeps a log while a node that is about to list ledgers in it is paused at that very point. The sweeper's clock is ahead by more than
    the grace of young ledgers."""

    NAME = "janitor"
    MOMENTS = ("log.describe_ledger", "log.head_change", "log.head_change")
    WAIT_S = 8.0
    AHEAD_S = 30.0

    def __init__(self, model: LogModel) -> None:
        self._model = model
        self._rng = model.rng(self.NAME)

    async def sweep(self, times: int) -> None:
        """Sweep `times` times, spread over the time of the faults."""
        model, rng = self._model, self._rng
        if times:
            model.context.world.clock(self.NAME).jump(model.load.orphan_grace_s + self.AHEAD_S)
        for _ in range(times):
            await model.pause(rng.uniform(0.3, 1.5) * model.context.plan.duration_s / (times + 1))
            await self._sweep_at(rng.choice(self.MOMENTS))

    async def _sweep_at(self, moment: str) -> None:
        model, rng = self._model, self._rng
        held: list[SimulatedHost] = []
        reached = asyncio.Event()
        trap = model.context.world.points.trap(moment, pausing(model.context, held, reached), skip=rng.randrange(8))
        await wait_for(reached, self.WAIT_S)
        trap.cancel()
        if not held:
            return
        model.count("swept_at_moment")
        # By either clock, the ledger to be listed is older than the grace by then, or it is not.
        await model.pause(rng.choice([0.0, 1.5]) * min(model.load.orphan_grace_s, self.WAIT_S))
        try:
            await model.context.cluster.client(self.NAME).run(self._sweep_all)
        except NodeDied:
            model.count("janitors_killed")
        finally:
            held[0].resume()

    async def _sweep_all(self, client: Client) -> None:
        logs = self._model.logs(client)
        for log in LOGS:
            try:
                async with asyncio.timeout(self.WAIT_S):
                    self._model.count("ledgers_swept", (await logs.sweep(log))["ledgers"])
            except (TimeoutError, *UNKNOWN_OUTCOMES) as error:
                self._model.count_error(error)
