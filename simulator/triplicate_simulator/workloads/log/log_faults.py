"""Faults of the owners of logs: death, pause, or loss of their bookies, at any time or at a named point."""

from __future__ import annotations

import asyncio
import re

from triplicate.client import Client
from triplicate.errors import ConnectionLost
from triplicate.metadata import InjectedFault
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate_simulator.workloads.log.log_model import LOGS, UNKNOWN_OUTCOMES, WRITTEN, LogModel, wait_for

WRITING = ("log.recover_segment", "log.create_ledger", "log.head_change", "log.roll", "log.roll", "log.segment_header")
"""Fault points at which an owner, or a node about to become one, is struck."""
PUBLISHING = ("log.describe_ledger", "log.head_change", "log.discard")
"""Fault points at which a publisher is struck."""
ASKING = ("log.request", "log.request", "log.describe_ledger")
"""Fault points at which a publisher is struck that sends requests to a living writer."""
MOMENT_WAIT_S = 6.0
"""Time for which a node is watched for a fault point. If it does not reach the point it is struck then and there."""
SUCCESSION_S = 8.0
"""Longest wait for another owner."""


class LostReplies:
    """Loses answers of the metadata store to changes of logs' heads and of publishers' state: applied, with unknown outcome."""

    PATH = re.compile(rf"/logs/({'|'.join(LOGS)})(/publishers/[^/]+)?$")

    def __init__(self, scene: LogModel) -> None:
        self._scene = scene
        self._chance = scene.chance("lost answers")
        self._left = 0
        store = scene.stage.cluster.store
        self._before = store.fault
        store.fault = self._fault

    async def lose(self, times: int) -> None:
        """Lose answers `times` times, spread over the time of the faults, now and then several in a row."""
        scene = self._scene
        for _ in range(times):
            await scene.until_quiet(self._chance.uniform(0.3, 1.5) * scene.stage.plan.duration_s / (times + 1))
            self._left = self._chance.choice([1, 1, 2, 4])
        self._left = 0

    def _fault(self, session_id: int, operation: str, path: str) -> InjectedFault | None:
        made = None if self._before is None else self._before(session_id, operation, path)
        if self._left and made is not None and operation == "multi" and self.PATH.search(path):
            self._left -= 1
            self._scene.count("answers_lost")
            made.raise_after = ConnectionLost(f"{operation} {path}: the answer was lost (simulated)")
        return made


class OwnerFaults:
    """Strikes nodes in turn and lets the other writers take over.

    Args:
        log: the log whose owner, or next owner, is struck.
        victims: nodes that use the log.
        moments: names of fault points.
    """

    def __init__(self, scene: LogModel, name: str, log: str, victims: tuple[str, ...], moments: tuple[str, ...]) -> None:
        self._scene = scene
        self._log = log
        self._moments = moments
        self._victims = victims
        self._chance = scene.chance(name)

    async def strike(self, times: int) -> None:
        """Strike `times` times, spread over the time of the faults."""
        scene, chance = self._scene, self._chance
        for _ in range(times):
            await scene.until_quiet(chance.uniform(0.3, 1.5) * scene.stage.plan.duration_s / (times + 1))
            victim = scene.owner.get(self._log) or chance.choice(self._victims)
            way = chance.choice(["kill", "kill", "pause", "pause", "pause", "cut", "alone"])
            if way in ("kill", "pause") and chance.random() < 0.7:
                victim = await self._at_moment(victim, way)
            if victim and not scene.is_quiet:
                await self._strike(victim, way)

    async def _at_moment(self, owner: str, way: str) -> str:
        """Wait until a node reaches a drawn fault point and strike it there. Empty if that was done, otherwise the node to be struck."""
        scene, chance = self._scene, self._chance
        moment = chance.choice(self._moments)
        struck: list[str] = []
        done = asyncio.Event()

        def spring(node: str) -> None:
            struck.append(node)
            self._down(node, way)
            done.set()

        target = owner if moment == "log.roll" else chance.choice(self._victims)
        trap = scene.stage.world.points.strike(moment, spring, node=target, skip=chance.randrange(2))
        await wait_for(done, MOMENT_WAIT_S)
        trap.cancel()
        if not struck:
            return target
        scene.count("struck_at_moment")
        await self._recover(target, way)
        return ""

    async def _strike(self, victim: str, way: str) -> None:
        if way in ("cut", "alone"):
            await self._cut(victim, way)
        elif self._down(victim, way):
            await self._recover(victim, way)

    def _down(self, name: str, way: str) -> bool:
        """Kill or pause a node. False if it is down already."""
        scene, host = self._scene, self._scene.stage.cluster.client(name).host
        if host is None or not host.alive or host.paused:
            return False
        if way == "kill":
            scene.count("owners_killed")
            scene.stage.cluster.client(name).crash(silent=True)
        else:
            scene.count("owners_paused")
            host.pause()
        if self._log == WRITTEN:
            scene.hurry.set()
        return True

    async def _recover(self, name: str, way: str) -> None:
        scene, node = self._scene, self._scene.stage.cluster.client(name)
        host = node.host
        if self._chance.random() < 0.5:
            await scene.until_quiet(self._chance.choice([0.2, 1.0, 3.0, 6.0]))
        else:
            await self._until_succeeded(name)
        if way == "kill":
            await node.restart()
        elif host is not None:
            host.resume()

    async def _until_succeeded(self, name: str) -> None:
        """Wait, within a limit, until another node has had the log for a moment."""
        scene, until_s = self._scene, self._scene.time() + SUCCESSION_S
        while scene.owner.get(self._log) in (None, name) and scene.time() < until_s and not scene.is_quiet:
            await scene.until_quiet(0.1)
        await scene.until_quiet(self._chance.uniform(0.0, 1.5))

    async def _cut(self, victim: str, way: str) -> None:
        """Cut a node off from most bookies: its segment breaks. Alone with one of them it is killed, and that bookie is unreachable for a
        while."""
        scene, chance = self._scene, self._chance
        network, bookies = scene.stage.world.network, list(scene.stage.cluster.bookies)
        chance.shuffle(bookies)
        reached = bookies[: 1 if way == "alone" else chance.choice([1, 2])]
        lost = [bookie for bookie in bookies if bookie not in reached]
        for bookie in lost:
            network.block(victim, bookie)
        scene.count("owners_cut_off")
        await scene.until_quiet(chance.uniform(1.0, 5.0))
        if way == "alone":
            self._down(victim, "kill")
            for node in self._victims:
                network.block(node, reached[0])
            await scene.until_quiet(chance.uniform(2.0, 5.0))
            for node in self._victims:
                network.unblock(node, reached[0])
        for bookie in lost:
            network.unblock(victim, bookie)
        await scene.stage.cluster.client(victim).restart()


async def kill_bookies(scene: LogModel, times: int) -> None:
    """Kill so many bookies, `times` times, that no segment can continue or be created. Writers must recover when they are back."""
    chance, cluster = scene.chance("bookies"), scene.stage.cluster
    for _ in range(times):
        await scene.until_quiet(chance.uniform(0.2, 1.5) * scene.stage.plan.duration_s / (times + 1))
        bookies = list(cluster.bookies.values())
        chance.shuffle(bookies)
        struck = [bookie for bookie in bookies if bookie.alive][: max(2, len(bookies) - scene.load.ensemble_size + 1)]
        if scene.is_quiet:
            return
        for bookie in struck:
            bookie.crash(silent=False, keep_unsynced=chance.random() < 0.5)
        scene.count("bookies_taken", len(struck))
        # Writers tolerate the loss for a moment; then their segment is broken.
        await scene.until_quiet(chance.choice([2.0, 4.0, 7.0]))
        for bookie in struck:
            await bookie.restart()


class RacingSweeper:
    """Sweeps a log while a node that is about to list ledgers in it is paused at that very point. The sweeper's clock is ahead by more than
    the grace of young ledgers."""

    NAME = "janitor"
    MOMENTS = ("log.describe_ledger", "log.head_change", "log.head_change")
    WAIT_S = 8.0
    AHEAD_S = 30.0

    def __init__(self, scene: LogModel) -> None:
        self._scene = scene
        self._chance = scene.chance(self.NAME)

    async def sweep(self, times: int) -> None:
        """Sweep `times` times, spread over the time of the faults."""
        scene, chance = self._scene, self._chance
        if times:
            scene.stage.world.clock(self.NAME).jump(scene.load.orphan_grace_s + self.AHEAD_S)
        for _ in range(times):
            await scene.until_quiet(chance.uniform(0.3, 1.5) * scene.stage.plan.duration_s / (times + 1))
            await self._sweep_at(chance.choice(self.MOMENTS))

    async def _sweep_at(self, moment: str) -> None:
        scene, chance = self._scene, self._chance
        held: list[SimulatedHost] = []
        came = asyncio.Event()

        def come(node: str) -> None:
            host = scene.stage.cluster.client(node).host
            if host is not None and host.alive and not host.paused:
                host.pause()
                held.append(host)
            came.set()

        trap = scene.stage.world.points.strike(moment, come, skip=chance.randrange(8))
        await wait_for(came, self.WAIT_S)
        trap.cancel()
        if not held:
            return
        scene.count("swept_at_moment")
        # By either clock, the ledger to be listed is older than the grace by then, or it is not.
        await scene.until_quiet(chance.choice([0.0, 1.5]) * min(scene.load.orphan_grace_s, self.WAIT_S))
        try:
            await scene.stage.cluster.client(self.NAME).run(self._sweep_all)
        except NodeDied:
            scene.count("janitors_killed")
        finally:
            held[0].resume()

    async def _sweep_all(self, client: Client) -> None:
        logs = self._scene.logs(client)
        for log in LOGS:
            try:
                async with asyncio.timeout(self.WAIT_S):
                    self._scene.count("ledgers_swept", (await logs.sweep(log))["ledgers"])
            except (TimeoutError, *UNKNOWN_OUTCOMES) as error:
                self._scene.trouble(error)
