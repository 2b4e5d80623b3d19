"""One seed's run, from its plan to its verdict: a workload runs, faults strike, every node must recover, and checkers judge."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import traceback
from dataclasses import dataclass, field, replace
from typing import Any

from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError
from triplicate.sim.barriers import points_known
from triplicate.sim.disk import DiskTiming
from triplicate.sim.host import World, derive_seed
from triplicate.sim.recorder import Fact
from triplicate.sim.virtual_loop import HostCrashed, SimulationStuck
from triplicate_simulator.checkers.history import Verdict, judge
from triplicate_simulator.checkers.ledger_promises import Copy
from triplicate_simulator.cluster.bookie_setup import bookie_settings, draw_bookie_setup
from triplicate_simulator.cluster.leftovers import find_unexpected_nodes
from triplicate_simulator.cluster.plan import PLAN_VERSION, BookieSetup, Fault, Plan, check_plan
from triplicate_simulator.cluster.run_context import PROGRESS_S, RunContext
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions, SimulatedCluster
from triplicate_simulator.faults.fault_kind import FaultTargets
from triplicate_simulator.faults.fault_table import FAULT_KINDS, draw_faults, draw_long_faults, draw_unreachable_metadata, run_fault
from triplicate_simulator.faults.triggered_faults import draw_triggered_faults
from triplicate_simulator.workloads.workload_table import WORKLOADS

CALM_SHARE = 1 / 3
"""After the faults the workload runs on for at least this share of its time, unless faults have lasted longer."""

SETTLE_S = 2.0
"""Time after everything was stopped in which the last packets and timers of stopped nodes may run out."""

CALLBACKS_MAX, TIME_MAX_S = 3_000_000, 2000.0
"""Far beyond the need of any seed, which is below 1,000,000 callbacks: a run that reaches these bounds never ends."""

VIOLATIONS_SHOWN = 20

OTHER_FINDINGS = ("progress", "leaks", "leftovers", "unhandled", "bookies", "processes", "space", "copies", "snapshots", "failed")
"""Findings other than those of the checkers: an actor does not finish; something is left in memory, or in the metadata; an error was not
handled; a bookie ended or did not start without a fault that excuses it, or started where it must not; another process ended by itself;
deleted data still occupies space; a database's copy failed, or a retry never ends, without a fault that explains it; a snapshot is
damaged; an actor met an impossible state."""
_REPORTER_OF_HEAD = {
    "no progress": "progress",
    "stuck": "progress",
    "leak": "leaks",
    "left over": "leftovers",
    "unhandled": "unhandled",
    "bookie": "bookies",
    "process": "processes",
    "space": "space",
    "copy": "copies",
    "snapshot": "snapshots",
}

BACKGROUND_WORK = {
    "compactions": "bookie.log_compacted",
    "logs_given_back": "bookie.entry_logs_deleted",
    "ledgers_dropped": "bookie.ledgers_deleted",
    "rebuilds": "bookie.index_rebuilt",
    "reserves_released": "bookie.reserve_released",
    "directories_passed_over": "bookie.directory_passed_over",
}
"""Background work of bookies, and the fact that records it."""
AFTER_SILENCE_S = 15.0
"""Time that a workload runs, at least, after a silence of the metadata."""
JUMP_MAX_S = 0.3
"""Largest jump of a wall clock where deleted ledgers wait in the trash for a few seconds. The period is wall time: a larger jump than the
tenth of it that is kept as a margin would remove ledgers that can still be restored."""

WORKLOAD_OF_DIGIT = {3: "logs", 7: "databases", 8: "stores", 9: "repairs"}
"""Workload of the seeds that end with this digit; all others run ledgers."""


def reporter_of(violation: str) -> str:
    """The reporter of a violation: a checker, or one of `OTHER_FINDINGS`."""
    head = violation.partition(":")[0]
    return head if any(head in workload.checkers for workload in WORKLOADS.values()) else _REPORTER_OF_HEAD.get(head, "failed")


@dataclass
class Result:
    """The result of one seed."""

    seed: int
    workload: str
    digest: str
    virtual_s: float
    counts: dict[str, int]
    struck: dict[str, int]
    verdicts: list[Verdict]
    violations: list[str]
    """Empty when all is well: findings of checkers, leaks, unhandled errors, lack of progress. `reporter_of` gives the reporter of each."""
    facts: list[Fact] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    """The events that the clients saw."""
    cpu_s: float = 0.0
    """Processor time, where it was measured."""

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={count}" for name, count in [*self.counts.items(), *self.struck.items()])
        word = "ok" if self.ok else "VIOLATED"
        head = f"seed {self.seed} ({self.workload}): {word} after {self.virtual_s:.1f} simulated seconds, digest {self.digest}, {numbers}"
        shown = self.violations[:VIOLATIONS_SHOWN]
        more = len(self.violations) - len(shown)
        return "\n".join([head, *(f"  {violation}" for violation in shown), *([f"  and {more} more"] if more else [])])


def describe_error(error: BaseException) -> str:
    """An error that ended a run, with the place where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"failed: {type(error).__name__} in {place.name}: {error}"


def bookie_names(count: int = ClusterOptions.bookies) -> list[str]:
    """Names of a cluster's bookies."""
    return [f"bookie-{number + 1}" for number in range(count)]


def plan_of(seed: int, workload: str | None = None) -> Plan:
    """Draw the plan of a seed.

    Args:
        play: the workload instead of the one that the seed's last digit selects.
    """
    kind = WORKLOADS[workload or workload_of(seed)]
    rng = random.Random(derive_seed(seed, "plan", kind.name))
    load = kind.draw(rng)
    plan = Plan(kind.name, load, sync_high_s=rng.choice([0.004, 0.004, 0.030]), metadata_high_s=rng.choice([0.004, 0.004, 0.050]))
    rooms = ("bookie", *kind.rooms)
    points = tuple(name for name in points_known() if name.partition(".")[0] in rooms)
    storage = draw_bookie_setup(random.Random(derive_seed(seed, "storage", kind.name)))
    names = tuple(kind.machines(load)) or tuple(bookie_names())
    targets = FaultTargets(names, kind.clients(load), points, kind.losses_max(load), storage)
    faults = draw_faults(rng, targets, plan.duration_s)
    if kind.ambushed:
        faults += draw_triggered_faults(rng, targets, plan.duration_s)
    faults += draw_long_faults(random.Random(derive_seed(seed, "weather", kind.name)), targets, plan.duration_s)
    faults += draw_unreachable_metadata(random.Random(derive_seed(seed, "unreachable", kind.name)), targets, plan.duration_s)
    faults += kind.draw_further_faults(random.Random(derive_seed(seed, "further faults", kind.name)), targets, plan.duration_s)
    if storage.trash_period_s:
        faults = tuple(_limit_jump(fault) if fault.kind == "clock" else fault for fault in faults)
    # A silence lasts for minutes, and its consequences need time.
    ends_s = max((fault.at_s + fault.lasts_s + AFTER_SILENCE_S for fault in faults if fault.kind == "metadata_silent"), default=0.0)
    duration_s = max(plan.duration_s, round(ends_s, 3))
    return replace(plan, faults=tuple(sorted(faults, key=lambda fault: fault.at_s)), storage=storage, duration_s=duration_s)


def _limit_jump(fault: Fault) -> Fault:
    seconds = float(fault.options["seconds"])
    return replace(fault, options={**fault.options, "seconds": max(-JUMP_MAX_S, min(JUMP_MAX_S, seconds))})


def workload_of(seed: int) -> str:
    """The workload of a seed, which its last digit selects."""
    name = WORKLOAD_OF_DIGIT.get(seed % 10, "ledgers")
    # Until a workload exists its seeds run ledgers.
    return name if name in WORKLOADS else "ledgers"


def plan_from_json(text: str) -> Plan:
    """Read a plan that `Plan.to_json` wrote.

    Raises:
        ValueError: the text is no plan.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from error
    if not isinstance(found, dict) or "v" not in found:
        raise ValueError("no plan: it has no version v")
    if found["v"] != PLAN_VERSION:
        raise ValueError(f"the plan is of version {found['v']!r}, and this program reads version {PLAN_VERSION} only")
    if found.get("play") not in list(WORKLOADS):
        raise ValueError(f"no plan of version {PLAN_VERSION} for one of the workloads {', '.join(WORKLOADS)}")
    try:
        load = WORKLOADS[found["play"]].load_type(**found["load"])
        faults = tuple(Fault(**fault) for fault in found["faults"])
        for fault in faults:
            if fault.kind not in FAULT_KINDS:
                raise ValueError(f"there is no fault {fault.kind!r}; there are: {', '.join(FAULT_KINDS)}")
        storage = BookieSetup(**found["storage"])
        plan = Plan(found["play"], load, faults, found["duration_s"], found["sync_high_s"], found["metadata_high_s"], storage)
        check_plan(plan)
        seconds = [float(value) for value in (plan.duration_s, plan.sync_high_s, plan.metadata_high_s)]
        return Plan(plan.workload, load, faults, seconds[0], seconds[1], seconds[2], storage)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the plan lacks a field or has one too many: {error}") from error


def run_seed(seed: int, plan: Plan | None = None) -> Result:
    """Run one seed. The same seed gives the same digest in every process.

    Args:
        plan: replaces the plan that the seed draws (`plan_of` with changes). Random draws within the run are still the seed's.
    """
    # Existing objects are frozen, so that collecting the world's garbage at the end costs no more than the world.
    gc.collect(0)
    gc.freeze()
    try:
        return Scenario(seed, plan or plan_of(seed)).run()
    finally:
        gc.collect()
        gc.unfreeze()


class Scenario:
    """One run of one plan.

    Raises:
        ArgumentError: no workload accepts such a load.
    """

    def __init__(self, seed: int, plan: Plan) -> None:
        self.plan = plan
        disk = DiskTiming(sync_high_s=plan.sync_high_s)
        self.world = World(seed, disk=disk, callbacks_max=CALLBACKS_MAX, time_max_s=TIME_MAX_S)
        settings = ClientSettings(
            add_timeout_s=1.0,
            read_timeout_s=1.0,
            connect_timeout_s=1.0,
            long_poll_wait_s=0.5,
            trash_period_s=plan.storage.trash_period_s,
        )
        kind = WORKLOADS[plan.workload]
        machines = kind.machines(plan.load)
        options = ClusterOptions(
            bookies=len(machines) or ClusterOptions.bookies,
            machines=machines,
            client_settings=settings,
            bookie_settings=bookie_settings(plan.storage),
            metadata_delay_high_s=plan.metadata_high_s,
        )
        self.cluster = SimulatedCluster(self.world, options)
        self.context = RunContext(self.world, self.cluster, plan)
        try:
            self.workload = kind(self.context, plan.load)
        except (LookupError, TypeError, ValueError) as error:
            self.world.close()
            raise ArgumentError(f"the workload {plan.workload} cannot begin with this load: {error!r}") from error

    def run(self) -> Result:
        """Run the plan and judge it."""
        problems = self.context.problems
        try:
            self.world.run(self._run_plan())
        except SimulationStuck as stuck:
            problems.append(f"stuck: {stuck}")
        except (Exception, HostCrashed) as error:  # noqa: BLE001 - any error is a finding of this seed
            problems.append(describe_error(error))
        digest, virtual_s = self.world.recorder.hexdigest(), self.world.loop.time()
        verdicts: list[Verdict] = []
        try:
            verdicts = self._judge()
        except Exception as error:  # noqa: BLE001 - a history that a judge did not expect is a finding as well
            problems.append(describe_error(error))
        self.world.close()
        gc.collect()
        violations = [f"{verdict.checker}: {violation}" for verdict in verdicts for violation in verdict.violations]
        violations += problems
        if self.world.recorder.dropped:
            violations.append(f"failed: {self.world.recorder.dropped} facts were dropped, in which findings may have been")
        # No disk fails unless it was struck: a bookie that fails otherwise has a bug.
        failed = [fact for fact in self.world.recorder.facts if fact.kind == "bookie.failed" and not self._may_fail(fact)]
        violations += [f"bookie: {what}" for what in [*self.cluster.failures, *(f"{fact.node} failed: {fact}" for fact in failed)]]
        violations += [f"process: {end}" for end in self.cluster.ends]
        violations += [f"unhandled: {failure.get('message')}: {failure.get('exception')!r}" for failure in self.world.loop.failures]
        facts = self.world.recorder.facts
        return Result(
            self.world.seed,
            self.plan.workload,
            digest,
            virtual_s,
            self._counts(),
            dict(self.context.struck),
            verdicts,
            violations,
            facts,
            [event for history in (self.context.history, *self.context.further_histories.values()) for event in history.events],
        )

    def _judge(self) -> list[Verdict]:
        histories = {"": self.context.history, **self.context.further_histories}
        for fact in self.world.recorder.facts:
            if fact.kind == "host.crash":
                for history in histories.values():
                    history.deaths.setdefault(fact.node, []).append(fact.time_s)
        verdicts = judge(self.context.history, self.workload.checkers)
        for about, history in self.context.further_histories.items():
            for verdict, further in zip(verdicts, judge(history, self.workload.checkers), strict=True):
                verdict.merge(further, about)
        return verdicts

    async def _run_plan(self) -> None:
        loop, context = self.world.loop, self.context
        await self.cluster.start()
        await self.workload.begin()
        began = loop.time()
        faults = [loop.start_task(self._run_fault(fault, began), name=str(fault)) for fault in self.plan.faults]
        await asyncio.sleep(self.plan.duration_s)
        for fault in faults:
            await fault
        await self.cluster.revive()
        context.deadline_s = loop.time() + PROGRESS_S
        context.faults_over.set()
        await asyncio.sleep(max(0.0, began + self.plan.duration_s * (1.0 + CALM_SHARE) - loop.time()))
        await self.workload.finish()
        await self.cluster.stop()
        await asyncio.sleep(SETTLE_S)
        context.problems += [f"leak: {leak}" for leak in self.cluster.find_leaks()]
        # A life that was killed near the end leaves its ephemeral nodes until its session is over.
        await asyncio.sleep(self.cluster.options.session_high_s)
        context.problems += [f"left over: {stranger}" for stranger in find_unexpected_nodes(self.cluster.store)]

    async def _run_fault(self, fault: Fault, began_s: float) -> None:
        await run_fault(self.context, fault, began_s)
        bookie = self.cluster.bookies.get(fault.target)
        if bookie is not None:
            bookie.end_excuses()

    def _may_fail(self, fact: Fact) -> bool:
        bookie = self.cluster.bookies.get(fact.node)
        return bookie is not None and bookie.may_fail_at(fact.time_s)

    def _counts(self) -> dict[str, int]:
        counts = self.workload.counts()
        counts["metadata_connections_lost"] = self.cluster.connections_lost
        counts["lost_bytes"] = sum(disk.lost_bytes for disk in self.world.disks.values())
        counts["disk_operations"] = sum(disk.operations for disk in self.world.disks.values())
        counts["callbacks"] = self.world.loop.callbacks_run
        copies = self.context.history.of(Copy)
        counts["copies_missing"] = sum(1 for copy in copies if copy.payload is None and not copy.is_listed)
        counts["bookies_lost"] = len(self.context.lost_bookies)
        for name, kind in BACKGROUND_WORK.items():
            counts[name] = self.world.recorder.counts.get(kind, 0)
        return counts
