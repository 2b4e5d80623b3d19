"""The log workload: writers compete for one log and list batches of guests, publishers feed a second, a third has one writer and a
publisher; readers follow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from triplicate.client import Client
from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.checkers.log_rules import LOG_CHECKERS, EndRead, LogAcquired, LogRead, RetentionSet
from triplicate_simulator.checkers.numbering_rules import NUMBERING_CHECKERS
from triplicate_simulator.checkers.owner_rules import OWNER_CHECKERS
from triplicate_simulator.checkers.recreation_rules import LOG_RECREATION
from triplicate_simulator.cluster.leftovers import find_unreferenced
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions
from triplicate_simulator.workloads.log.log_faults import ASKING, PUBLISHING, WRITING, LostReplies, OwnerFaults, RacingSweeper, kill_bookies
from triplicate_simulator.workloads.log.log_load import WIDE_ENSEMBLE, LogLoad, draw_load
from triplicate_simulator.workloads.log.log_model import LOGS, MIXED, PUBLISHED, WRITTEN, LogModel
from triplicate_simulator.workloads.log.log_publishers import Application, PublisherActor
from triplicate_simulator.workloads.log.log_readers import FinalLogReader, LogRangeReader, LogTailer, LogTruncator
from triplicate_simulator.workloads.log.log_recreation import LogRecreation
from triplicate_simulator.workloads.log.log_stranding import StrandedOwner
from triplicate_simulator.workloads.log.log_writers import LogWriterActor
from triplicate_simulator.workloads.workload import Workload

CLERK = "clerk"
"""The node of the third log's writer."""
GUEST = "guest"
"""The application that publishes into the third log."""
AUDITOR = "auditor"
"""The node that checks for leftovers at the end."""
SEGMENT_SLACK_BYTES = 32 * 1024
"""A segment may exceed its roll size by this: entries in flight at the roll belong to it."""


COUNTED_EVENTS: dict[type[object], str] = {LogAcquired: "take_overs", LogRead: "entries_read", EndRead: "ends_seen"}
"""Names of events in `LogWorkload.counts`."""


class LogWorkload(Workload):
    """Three logs and their clients."""

    name = "logs"
    load_type = LogLoad
    rooms: ClassVar[tuple[str, ...]] = ("client", "log")
    checkers: ClassVar[dict[str, Checker]] = {**LOG_CHECKERS, **NUMBERING_CHECKERS, **LOG_RECREATION, **OWNER_CHECKERS}
    counted: ClassVar[tuple[str, ...]] = (
        "acknowledged",
        "take_overs",
        "fenced",
        "zombies",
        "rolls",
        "repairs",
        "batches_published",
        "published_already",
        "batches_admitted",
        "publish_refused",
        "ranges_read",
        "truncations",
        "pages",
        "struck_at_moment",
        "answers_lost",
        "metadata_out_of_reach",
        "publish_unknown",
        "numbered",
        "numbered_again",
        "numbered_repeated",
        "numbered_unknown",
        "held_across",
        "recreated",
        "owners_stranded",
        "ensembles_of_20",
        "publishers_forgotten",
        "published_and_forgotten",
    )

    def __init__(self, context: RunContext, load: LogLoad) -> None:
        super().__init__(context, load)
        self._model = LogModel(context, load)
        self._recreation = LogRecreation(self._model)
        self._working: list[asyncio.Task[None]] = []
        """Actors that end by themselves when faults are over."""
        self._tailing: list[asyncio.Task[None]] = []
        """Actors that end when the end of their log is known."""
        self._endless: list[asyncio.Task[None]] = []
        self._striking: list[asyncio.Task[None]] = []
        """Tasks that inject faults, and end with the faults."""

    @classmethod
    def draw(cls, rng: random.Random) -> LogLoad:
        return draw_load(rng)

    @classmethod
    def clients(cls, load: LogLoad) -> tuple[str, ...]:
        writers = tuple(f"writer-{number}" for number in range(1, load.writers + 1))
        return (*writers, *driver_names(load), *guest_names(load), CLERK, "tailer-1", "tailer-2", "ranger", "keeper")

    @classmethod
    def machines(cls, load: LogLoad) -> Mapping[str, str]:
        """One for each of the bookies, where there are more than usual."""
        if load.ensemble_size <= ClusterOptions.bookies:
            return {}
        return {f"bookie-{number}": f"machine-{number}" for number in range(1, load.ensemble_size + 1)}

    @classmethod
    def smaller(cls, load: LogLoad) -> Iterator[LogLoad]:
        for less in (
            replace(load, evictions=0),
            replace(load, truncations=0),
            replace(load, retain_size_bytes=0),
            replace(load, batches=0),
            replace(load, deaths=0),
            replace(load, interruptions=0),
            replace(load, lost_answers=0),
            replace(load, outages=0),
            replace(load, sweeps=0),
            replace(load, publishers_kept=10_000),
            replace(load, clocks_apart_s=0.0),
            replace(load, producers=0),
            replace(load, recreations=0),
            replace(load, strandings=0),
            replace(load, ensemble_size=min(load.ensemble_size, ClusterOptions.bookies)),
            replace(load, sweeper_ahead_s=0.0),
        ):
            if less != load:
                yield less
        if load.rivals:
            yield replace(load, rivals=False)
        if load.guests:
            yield replace(load, guests=load.guests - 1)
        if load.applications > 1:
            yield replace(load, applications=1)
        if load.writers > 1:
            yield replace(load, writers=load.writers - 1)
        if load.tasks > 1:
            yield replace(load, tasks=1)

    async def begin(self) -> None:
        context, model, load = self.context, self._model, self.load
        administrator = context.cluster.client("log-administrator")
        await administrator.run(self._create)
        if load.retain_size_bytes:
            segment_high_bytes = load.roll_size_bytes + SEGMENT_SLACK_BYTES
            model.add(RetentionSet(context.time(), WRITTEN, load.retain_size_bytes, segment_high_bytes))
        for number in range(1, load.writers + 1):
            first_s = 0.0 if number == 1 else model.rng("first", number).uniform(2.0, 20.0)
            writer = LogWriterActor(
                model, f"writer-{number}", WRITTEN, idle_mean_s=2.0 * load.writers, tenure_mean_s=load.tenure_mean_s, first_s=first_s
            )
            self._begin(self._working, writer.name, writer)
        clerk = LogWriterActor(model, CLERK, MIXED, idle_mean_s=4.0, tenure_mean_s=4.0, first_s=0.0)
        self._begin(self._working, CLERK, clerk)
        for name in driver_names(load)[1::2]:
            context.world.clock(name).jump(load.clocks_apart_s)
        for name, application in self._drivers():
            self._begin(self._working, name, PublisherActor(model, name, application, pause_mean_s=40.0 / (load.batches + 1)))
        for name in guest_names(load):
            guest = Application(name, WRITTEN, load.guest_batches)
            self._begin(self._working, name, PublisherActor(model, name, guest, pause_mean_s=60.0 / (load.guest_batches + 1)))
        for number, log in enumerate((WRITTEN, MIXED), 1):
            self._begin(self._tailing, f"tailer-{number}", LogTailer(model, f"tailer-{number}", log, restarts=1))
        self._begin(self._endless, "ranger", LogRangeReader(model, "ranger"))
        context.world.clock("keeper").jump(load.sweeper_ahead_s)
        self._begin(self._endless, "keeper", LogTruncator(model, "keeper"))
        writers = tuple(f"writer-{number}" for number in range(1, load.writers + 1))
        self._striking.append(context.world.loop.start_task(kill_bookies(model, load.outages), name="outages"))
        self._striking.append(context.world.loop.start_task(LostReplies(model).lose(load.lost_answers), name="lost answers"))
        self._striking.append(context.world.loop.start_task(RacingSweeper(model).sweep(load.sweeps), name="janitor"))
        self._striking.append(context.world.loop.start_task(self._recreation.run(load.recreations), name="recreation"))
        self._striking.append(context.world.loop.start_task(StrandedOwner(model).run(load.strandings), name="stranded owner"))
        for log, victims, moments, times in (
            (WRITTEN, writers, WRITING, load.evictions),
            (PUBLISHED, driver_names(load)[:-1], PUBLISHING, load.interruptions),
            (MIXED, (CLERK,), WRITING, load.deaths),
        ):
            evictor = OwnerFaults(model, f"evictions of {log}", log, victims, moments)
            self._striking.append(context.world.loop.start_task(evictor.run(times), name=f"evictions of {log}"))
        if load.guests:
            evictor = OwnerFaults(model, "evictions of guests", PUBLISHED, guest_names(load), ASKING)
            self._striking.append(context.world.loop.start_task(evictor.run(load.guests), name="evictions of guests"))

    def _drivers(self) -> Iterator[tuple[str, Application]]:
        names = iter(driver_names(self.load))
        for number in range(1, self.load.applications + 1):
            application = Application(f"application-{number}", PUBLISHED, self.load.batches)
            for _ in range(1 + self.load.rivals):
                yield next(names), application
        yield next(names), Application(GUEST, MIXED, self.load.batches)

    def _begin(self, tasks: list[asyncio.Task[None]], name: str, program: Callable[[Client], Awaitable[None]]) -> None:
        tasks.append(self.context.world.loop.start_task(self._model.keep_running(name, program), name=f"keep {name}"))

    async def _create(self, client: Client) -> None:
        logs = self._model.logs(client)
        for log in LOGS:
            await logs.create(log, self._model.log_settings(log), key_id="first" if self._model.load.encrypted else "")

    async def finish(self) -> None:
        context, model = self.context, self._model
        await context.finish_by_deadline(self._striking)
        for task in self._endless:
            task.cancel()
        await context.finish_by_deadline(self._working)
        await context.finish_by_deadline([context.keep_running(FinalLogReader.NAME, FinalLogReader(model))])
        await context.finish_by_deadline(self._tailing)
        await context.finish_by_deadline([context.keep_running(AUDITOR, self._audit)])

    async def _audit(self, client: Client) -> None:
        """Check that all staged, written and replaced ledgers are gone, except those that the logs list."""
        applications = [f"application-{number}" for number in range(1, self.load.applications + 1)]
        applications += [GUEST, *guest_names(self.load)]
        found = await find_unreferenced(client, self._model.client_settings, applications)
        self.context.problems += [f"left over: {what}" for what in found]

    def counts(self) -> dict[str, int]:
        is_wide = self.load.ensemble_size == WIDE_ENSEMBLE
        counts = {**self._model.counted, **self._recreation.counts, "ensembles_of_20": int(is_wide)}
        for event in self.context.history.events:
            name = COUNTED_EVENTS.get(type(event))
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
        return {name: counts[name] for name in sorted(counts)}


def driver_names(load: LogLoad) -> tuple[str, ...]:
    """Nodes of publishers: one or two for each application of the second log, one for the third."""
    count = load.applications * (1 + load.rivals) + 1
    return tuple(f"driver-{number}" for number in range(1, count + 1))


def guest_names(load: LogLoad) -> tuple[str, ...]:
    """Nodes and applications of the publishers of the first log."""
    return tuple(f"guest-{number}" for number in range(1, load.guests + 1))
