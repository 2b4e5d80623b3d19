"""The standard scenario: a ledger is written and tailed while bookies crash; the writer crashes too; another client recovers.

Everything is drawn from one seed. When all is over the bookies that are down are started again, everything is read, the checkers judge
the history, and nothing may be left over.
"""

from __future__ import annotations

import asyncio
import gc
import random
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from triplicate.config import ClientSettings
from triplicate.errors import TriplicateError
from triplicate.sim.checkers import History, Verdict, judge
from triplicate.sim.cluster import LEDGER_DIRECTORY, BookieNode, ClientNode, ClusterOptions, SimulatedCluster
from triplicate.sim.disk import DiskTiming
from triplicate.sim.host import NodeDied, World, derive_seed
from triplicate.sim.loop import HostCrashed, SimulationStuck, context_of
from triplicate.sim.plan import BookieCrash, LinkFault, Plan, draw_plan
from triplicate.sim.record import Fact
from triplicate.sim.workload import FinalReader, Prober, Recoverer, Stage, Tailer, Writer

SETTLE_S = 2.0
"""After everything was stopped, the time in which the last packets and timers of stopped nodes may run out."""

PROGRESS_S = 120.0
"""Once faults have stopped, recovery, tailers and the final read must be done within this virtual time."""

SLOW_FACTOR = 10.0


@dataclass
class Result:
    """What became of one seed."""

    seed: int
    digest: str
    virtual_s: float
    counts: dict[str, int]
    verdicts: list[Verdict]
    violations: list[str]
    """Empty when all is well: the checkers' findings, leaks, unhandled errors, lack of progress."""
    facts: list[Fact] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={count}" for name, count in self.counts.items())
        word = "ok" if self.ok else "VIOLATED"
        head = f"seed {self.seed}: {word} after {self.virtual_s:.1f} simulated seconds, digest {self.digest}, {numbers}"
        return "\n".join([head, *(f"  {violation}" for violation in self.violations)])


@dataclass
class Summary:
    """What became of many seeds."""

    results: list[Result] = field(default_factory=list)

    @property
    def failed(self) -> list[Result]:
        """The seeds with a violation."""
        return [result for result in self.results if not result.ok]

    def totals(self) -> dict[str, int]:
        """Counts of all seeds added up."""
        totals: dict[str, int] = {}
        for result in self.results:
            for name, count in result.counts.items():
                totals[name] = totals.get(name, 0) + count
        return totals

    def decided(self) -> dict[str, int]:
        """How often each checker had something to decide."""
        decided: dict[str, int] = {}
        for result in self.results:
            for verdict in result.verdicts:
                decided[verdict.checker] = decided.get(verdict.checker, 0) + verdict.decided
        return decided


def run(seeds: Iterable[int], *, report: Callable[[Result], None] | None = None) -> Summary:
    """Run the standard scenario for several seeds.

    Args:
        seeds: one run each.
        report: called with each result as it comes; facts are dropped afterwards.
    """
    summary = Summary()
    for seed in seeds:
        result = run_seed(seed)
        if report is not None:
            report(result)
        result.facts = []
        summary.results.append(result)
    return summary


def plan_of(seed: int) -> Plan:
    """What the seed draws."""
    return draw_plan(random.Random(derive_seed(seed, "plan")), [f"bookie-{number}" for number in range(1, ClusterOptions.bookies + 1)])


def run_seed(seed: int, plan: Plan | None = None) -> Result:
    """Run the standard scenario once. The same seed gives the same digest in every process.

    Args:
        plan: what shall happen instead of what the seed draws (`plan_of` with changes); chance within it is still the seed's.
    """
    # What lives already is set aside, so that collecting the world's garbage at the end costs no more than the world.
    gc.collect(0)
    gc.freeze()
    try:
        return Scenario(seed, plan).run()
    finally:
        gc.collect()
        gc.unfreeze()


class Scenario:
    """One run of the standard scenario."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.plan = plan or plan_of(seed)
        self.world = World(seed, disk=DiskTiming(sync_high_s=self.plan.sync_high_s), time_max_s=2000.0)
        settings = ClientSettings(window_entries=self.plan.window_entries, add_timeout_s=1.0, read_timeout_s=1.0, connect_timeout_s=1.0)
        self.cluster = SimulatedCluster(self.world, ClusterOptions(client_settings=settings))
        self.history = History()
        self.stage = Stage(self.plan, self.history, self.world.loop.time, self.world.chance)
        self._problems: list[str] = []
        self._struck: dict[str, int] = {}

    def run(self) -> Result:
        """Play it and judge it."""
        try:
            self.world.run(self._play())
        except SimulationStuck as stuck:
            self._problems.append(f"stuck: {stuck}")
        except (TriplicateError, OSError, AssertionError) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._problems.append(f"failed: {type(error).__name__} in {place.name}: {error}")
        digest, virtual_s = self.world.recorder.hexdigest(), self.world.loop.time()
        verdicts = judge(self.history)
        self.world.close()
        gc.collect()
        violations = [f"{verdict.checker}: {violation}" for verdict in verdicts for violation in verdict.violations]
        violations += self._problems
        # No disk fails in this scenario: a bookie that gives up has met a fault of its own.
        violations += [str(fact) for fact in self.world.recorder.facts if fact.kind == "bookie.failed"]
        violations += [f"unhandled: {failure.get('message')}: {failure.get('exception')!r}" for failure in self.world.loop.failures]
        return Result(self.world.seed, digest, virtual_s, self._counts(), verdicts, violations, self.world.recorder.facts)

    async def _play(self) -> None:
        loop, plan, cluster = self.world.loop, self.plan, self.cluster
        await cluster.start()
        cluster.options.metadata_loss_rate = plan.metadata_loss_rate
        began = loop.time()
        writer = loop.begin(self._until_death(cluster.client("writer"), Writer(self.stage)), name="writer")
        tails = [
            loop.begin(cluster.client(name).run(Tailer(self.stage, name)), name=name)
            for name in (f"tailer-{number + 1}" for number in range(plan.tailers))
        ]
        prober = loop.begin(self._until_death(cluster.client("prober"), Prober(self.stage)), name="prober")
        faults = [loop.begin(self._crash_bookie(began, crash), name=f"crash {crash.bookie}") for crash in plan.bookie_crashes]
        faults += [
            loop.begin(self._disturb(began, fault), name=f"{fault.kind} {fault.source} {fault.target}") for fault in plan.link_faults
        ]
        faults += [loop.begin(self._expire(began, name, at_s), name=f"expire {name}") for name, at_s in plan.expiries]
        faults.append(loop.begin(self._crash_writer(began), name="crash writer"))
        recoveries = [
            loop.begin(self._recover(began, f"recoverer-{number + 1}"), name=f"recoverer-{number + 1}") for number in range(plan.recoverers)
        ]
        for fault in faults:
            await fault
        await writer
        await self._finish(recoveries, tails, prober)

    async def _finish(self, recoveries: list[asyncio.Task[None]], tails: list[asyncio.Task[None]], prober: asyncio.Task[None]) -> None:
        """Faults are over: everybody must come to an end."""
        self.cluster.options.metadata_loss_rate = 0.0
        await self.cluster.revive()
        if self.stage.ledger_id is None:
            # The writer died before it had made its ledger: there is nothing to recover, nor to wait for.
            for task in [*recoveries, *tails]:
                task.cancel()
        else:
            await self._by_deadline([*recoveries, *tails])
        self.cluster.client("prober").crash()
        await prober
        if self.stage.ledger_id is not None:
            final = self.world.loop.begin(self.cluster.client("final").run(FinalReader(self.stage)), name="final")
            await self._by_deadline([final])
        await self.cluster.stop()
        await asyncio.sleep(SETTLE_S)
        self._problems += [f"leak: {leak}" for leak in self.cluster.find_leaks()]

    async def _by_deadline(self, tasks: list[asyncio.Task[None]]) -> None:
        deadline = self.world.loop.time() + PROGRESS_S
        for task in tasks:
            try:
                async with asyncio.timeout_at(deadline):
                    await task
            except TimeoutError:
                unknown = " ".join(f"{name}={count}" for name, count in self.stage.unknown.items())
                self._problems.append(
                    f"no progress: {task.get_name()} is not done {PROGRESS_S:.0f} s after faults have stopped ({unknown})"
                )

    async def _expire(self, began: float, name: str, at_s: float) -> None:
        await self._sleep_until(began + at_s)
        bookie = self.cluster.bookies[name]
        # One that is still starting would, rightly, give up; whoever supervises processes would start it again.
        if bookie.bookie is not None and bookie.expire_session():
            self._strike("session_expired")

    async def _until_death(self, node: ClientNode, program: Writer | Prober) -> None:
        with suppress(NodeDied):
            await node.run(program)

    async def _recover(self, began: float, name: str) -> None:
        await self._sleep_until(began + self.plan.recovery_s)
        await self.cluster.client(name).run(Recoverer(self.stage, name))

    async def _crash_writer(self, began: float) -> None:
        await self._sleep_until(began + self.plan.writer_crash_s)
        bookies = self.cluster.bookies
        if self.plan.power_loss:
            await self._at_operation(bookies[self.plan.power_bookie], "sync", 0, self._cut_power)
        self._cut_power() if self.plan.power_loss else self._kill_writer()
        await asyncio.sleep(0.1)
        for bookie in bookies.values() if self.plan.power_loss else ():
            await self._start(bookie)

    def _kill_writer(self) -> None:
        if self.cluster.client("writer").alive:
            self._strike("writer_crash")
            self.cluster.client("writer").crash(silent=self.plan.writer_silent)

    def _cut_power(self) -> None:
        if self.cluster.client("writer").alive:
            self._strike("power_loss")
            self._kill_writer()
            for bookie in self.cluster.bookies.values():
                bookie.crash(silent=True)

    async def _crash_bookie(self, began: float, crash: BookieCrash) -> None:
        await self._sleep_until(began + crash.at_s)
        bookie = self.cluster.bookies[crash.bookie]

        def strike() -> None:
            if bookie.alive:
                self._strike("bookie_crash_at_" + crash.operation if crash.operation else "bookie_crash")
                bookie.crash(silent=crash.silent, keep_unsynced=crash.manner == "process")

        if crash.manner == "stop":
            self._strike("bookie_stop")
            with suppress(NodeDied):
                await bookie.stop()
            bookie.crash(keep_unsynced=True)
        elif crash.operation:
            await self._at_operation(bookie, crash.operation, crash.after_operations, strike)
            strike()
        else:
            strike()
        await asyncio.sleep(crash.down_s)
        await self._start(bookie)

    async def _at_operation(self, bookie: BookieNode, kind: str, after: int, strike: Callable[[], None]) -> None:
        """Strike right before a disk operation of a bookie, which may be in the midst of a flush; wait for it a second at most."""
        disk = self.world.disk(bookie.name)
        if not bookie.alive or disk.before_operation is not None:
            return
        struck = asyncio.Event()
        left = after

        def before_operation(operation: str, path: str) -> None:
            nonlocal left
            if kind in ("any", operation) or (kind == "flush" and is_of_flush(path)):
                left -= 1
            if left < 0:
                self.world.loop.call_soon(struck.set, context=context_of(None))
                strike()
                raise HostCrashed(bookie.name)

        disk.before_operation = before_operation
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await struck.wait()
        if disk.before_operation is before_operation:
            disk.before_operation = None

    async def _start(self, bookie: BookieNode) -> None:
        """Start a bookie, unless somebody else does; another crash may interrupt it."""
        if not bookie.alive:
            with suppress(NodeDied):
                await bookie.start()

    async def _disturb(self, began: float, fault: LinkFault) -> None:
        await self._sleep_until(began + fault.at_s)
        network = self.world.network
        self._strike(f"link_{fault.kind}")
        match fault.kind:
            case "block":
                network.block(fault.source, fault.target)
                await asyncio.sleep(fault.lasts_s)
                network.unblock(fault.source, fault.target)
            case "slow":
                network.slow(fault.source, fault.target, SLOW_FACTOR)
                await asyncio.sleep(fault.lasts_s)
                network.slow(fault.source, fault.target, 1.0)
            case "reset":
                network.reset(fault.source, fault.target)

    async def _sleep_until(self, when: float) -> None:
        await asyncio.sleep(max(0.0, when - self.world.loop.time()))

    def _strike(self, kind: str) -> None:
        self._struck[kind] = self._struck.get(kind, 0) + 1
        self.world.recorder.fact("world", "fault." + kind, {})

    def _counts(self) -> dict[str, int]:
        events = self.history.events
        counts: dict[str, int] = {}
        for event in events:
            name = type(event).__name__.lower()
            counts[name] = counts.get(name, 0) + 1
        counts["ensemble_changes"] = self.stage.writer.ensemble_changes if self.stage.writer is not None else 0
        counts["metadata_connections_lost"] = self.cluster.connections_lost
        counts["lost_bytes"] = sum(disk.lost_bytes for disk in self.world.disks.values())
        counts["disk_operations"] = sum(disk.operations for disk in self.world.disks.values())
        counts["callbacks"] = self.world.loop.callbacks_run
        counts.update(self._struck)
        return counts


def is_of_flush(path: str) -> bool:
    """Whether only flushes touch this file, once the bookie runs: logs, index, and the mark of the journal."""
    return path.startswith(LEDGER_DIRECTORY) or path.rpartition("/")[2].startswith("mark")
