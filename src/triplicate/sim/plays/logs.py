"""The play of logs: writers compete for one, publishers feed another, a third changes between a writer and a publisher; readers follow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import ClassVar

from triplicate.client import Client
from triplicate.sim.checkers.logs import LOG_CHECKERS, CutAllowed
from triplicate.sim.plays.base import Play
from triplicate.sim.plays.log_load import LogLoad, draw_load
from triplicate.sim.plays.log_publishers import Application, Driver
from triplicate.sim.plays.log_readers import FinalReader, Keeper, Ranger, Tailer
from triplicate.sim.plays.log_scene import LOGS, MIXED, PUBLISHED, WRITTEN, Scene
from triplicate.sim.plays.log_writers import Writer
from triplicate.sim.stage import Stage

CLERK = "clerk"
"""The node of the third log's writer."""
EVERYTHING = 1 << 62


class LogPlay(Play):
    """Three logs and those who use them."""

    name = "logs"
    load_type = LogLoad
    checkers = LOG_CHECKERS
    counted: ClassVar[tuple[str, ...]] = (
        "acknowledged",
        "take_overs",
        "fenced",
        "zombies",
        "rolls",
        "repairs",
        "batches_published",
        "published_already",
        "ranges_read",
        "truncations",
        "pages",
    )

    def __init__(self, stage: Stage, load: LogLoad) -> None:
        super().__init__(stage, load)
        self._scene = Scene(stage, load)
        self._working: list[asyncio.Task[None]] = []
        """Who ends by itself when faults are over."""
        self._tailing: list[asyncio.Task[None]] = []
        """Who ends when the end of its log is known."""
        self._endless: list[asyncio.Task[None]] = []
        self._striking: list[asyncio.Task[None]] = []
        """Who strikes down, and ends with the faults."""

    @classmethod
    def draw(cls, chance: random.Random) -> LogLoad:
        return draw_load(chance)

    @classmethod
    def clients(cls, load: LogLoad) -> tuple[str, ...]:
        writers = tuple(f"writer-{number}" for number in range(1, load.writers + 1))
        return (*writers, *driver_names(load), CLERK, "tailer-1", "tailer-2", "ranger", "keeper")

    @classmethod
    def smaller(cls, load: LogLoad) -> Iterator[LogLoad]:
        for less in (
            replace(load, evictions=0),
            replace(load, truncations=0),
            replace(load, retain_size_bytes=0),
            replace(load, batches=0),
            replace(load, deaths=0),
        ):
            if less != load:
                yield less
        if load.rivals:
            yield replace(load, rivals=False)
        if load.applications > 1:
            yield replace(load, applications=1)
        if load.writers > 1:
            yield replace(load, writers=load.writers - 1)
        if load.tasks > 1:
            yield replace(load, tasks=1)

    async def begin(self) -> None:
        stage, scene, load = self.stage, self._scene, self.load
        administrator = stage.cluster.client("log-administrator")
        await administrator.run(self._create)
        if load.retain_size_bytes:
            scene.add(CutAllowed(stage.time(), WRITTEN, EVERYTHING))
        for number in range(1, load.writers + 1):
            first_s = 0.0 if number == 1 else scene.chance("first", number).uniform(2.0, 20.0)
            writer = Writer(
                scene, f"writer-{number}", WRITTEN, idle_mean_s=6.0 * load.writers, tenure_mean_s=load.tenure_mean_s, first_s=first_s
            )
            self._begin(self._working, writer.name, writer)
        clerk = Writer(scene, CLERK, MIXED, idle_mean_s=4.0, tenure_mean_s=4.0, first_s=0.0)
        self._begin(self._working, CLERK, clerk)
        for name, application in self._drivers():
            self._begin(self._working, name, Driver(scene, name, application, pause_mean_s=40.0 / (load.batches + 1)))
        for number, log in enumerate((WRITTEN, MIXED), 1):
            self._begin(self._tailing, f"tailer-{number}", Tailer(scene, f"tailer-{number}", log, restarts=1))
        self._begin(self._endless, "ranger", Ranger(scene, "ranger"))
        self._begin(self._endless, "keeper", Keeper(scene, "keeper"))
        self._striking = [stage.world.loop.begin(self._evict(), name="evictions"), stage.world.loop.begin(self._bury(), name="deaths")]

    def _drivers(self) -> Iterator[tuple[str, Application]]:
        names = iter(driver_names(self.load))
        for number in range(1, self.load.applications + 1):
            application = Application(f"application-{number}", PUBLISHED, self.load.batches)
            for _ in range(1 + self.load.rivals):
                yield next(names), application
        yield next(names), Application("guest", MIXED, self.load.batches)

    def _begin(self, tasks: list[asyncio.Task[None]], name: str, program: Callable[[Client], Awaitable[None]]) -> None:
        tasks.append(self.stage.world.loop.begin(self._scene.keep(name, program), name=f"keep {name}"))

    async def _create(self, client: Client) -> None:
        logs = self._scene.logs(client)
        for log in LOGS:
            await logs.create(log, self._scene.log_settings(log))

    async def _evict(self) -> None:
        """Now and then the owner of the first log dies or stands still, and the others do not wait for the end of its session."""
        scene, chance, load = self._scene, self._scene.chance("evictions"), self.load
        for _ in range(load.evictions):
            await scene.until_quiet(chance.uniform(0.5, 2.0) * self.stage.plan.duration_s / (load.evictions + 1))
            owner = scene.owner.get(WRITTEN)
            if owner is None or scene.is_quiet:
                continue
            if chance.random() < 0.5:
                await self._pause(owner, chance.uniform(0.5, 6.0))
            else:
                await self._strike_down(owner, chance.uniform(0.1, 4.0))

    async def _bury(self) -> None:
        """Now and then the writer of the third log dies, so that a publisher must take the log from the dead."""
        scene, chance = self._scene, self._scene.chance("deaths")
        for _ in range(self.load.deaths):
            await scene.until_quiet(chance.uniform(4.0, 16.0))
            if not scene.is_quiet:
                await self._strike_down(CLERK, chance.uniform(1.0, 8.0))

    async def _pause(self, name: str, seconds: float) -> None:
        host = self.stage.cluster.client(name).host
        if host is None or not host.alive or host.paused:
            return
        self._scene.count("owners_paused")
        host.pause()
        self._scene.hurry.set()
        await self._scene.until_quiet(seconds)
        host.resume()

    async def _strike_down(self, name: str, seconds: float) -> None:
        node = self.stage.cluster.client(name)
        if not node.alive:
            return
        self._scene.count("owners_killed")
        node.crash(silent=True)
        self._scene.hurry.set()
        await self._scene.until_quiet(seconds)
        await node.restart()

    async def finish(self) -> None:
        stage, scene = self.stage, self._scene
        await stage.by_deadline(self._striking)
        for task in self._endless:
            task.cancel()
        await stage.by_deadline(self._working)
        await stage.by_deadline([stage.keep(FinalReader.NAME, FinalReader(scene))])
        await stage.by_deadline(self._tailing)

    def counts(self) -> dict[str, int]:
        counts = dict(self._scene.counted)
        for event in self.stage.history.events:
            name = {"LogTaken": "take_overs", "LogRead": "entries_read", "EndSeen": "ends_seen"}.get(type(event).__name__)
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
        return {name: counts[name] for name in sorted(counts)}


def driver_names(load: LogLoad) -> tuple[str, ...]:
    """Nodes of drivers: one or two for each application of the second log, one for the third."""
    count = load.applications * (1 + load.rivals) + 1
    return tuple(f"driver-{number}" for number in range(1, count + 1))
