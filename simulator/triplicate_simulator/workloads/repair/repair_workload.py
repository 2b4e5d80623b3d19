"""The repair workload: ledgers are written and read while bookies are lost for good, and every ledger gets its full copies again.

Several bookies share a machine. Writers, readers and a recoverer of the ledger workload run beside replication workers, passes by hand and
faults. In the end every copy of every entry is read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from triplicate.autorecovery import UnneededCopies
from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.metadata import ClusterMetadata, PeriodicCheck
from triplicate.runtime import Host
from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.checkers.ledger_promises import LengthSubstituted
from triplicate_simulator.checkers.repair_rules import REPAIR_CHECKERS, Rearranged, WriterHeldGone
from triplicate_simulator.checkers.request_rules import REQUEST_CHECKERS
from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import PROGRESS_S, RunContext
from triplicate_simulator.faults import metadata_faults
from triplicate_simulator.faults.fault_kind import FaultTargets
from triplicate_simulator.faults.lasting_losses import draw_copies_rot, draw_disks_lost, draw_disks_replaced, draw_machines_away
from triplicate_simulator.workloads.ledger.ledger_readers import FinalLedgerReader, LedgerProber, LedgerTailer
from triplicate_simulator.workloads.ledger.ledger_recoverers import LedgerRecoverer
from triplicate_simulator.workloads.ledger.ledger_workload import event_counts
from triplicate_simulator.workloads.ledger.ledger_writers import LedgerWriterActor
from triplicate_simulator.workloads.repair.repair_actors import (
    CopyAudit,
    Decommissioner,
    HealingWatch,
    LossMarker,
    PassByHand,
    RefillByHand,
    RepairDaemon,
    RepairWorker,
)
from triplicate_simulator.workloads.repair.repair_load import DECOMMISSIONS_S, MACHINES, RACKS, RepairLoad, draw_load, smaller
from triplicate_simulator.workloads.repair.repair_log import RepairLog, log_writer_names
from triplicate_simulator.workloads.repair.repair_model import RepairModel
from triplicate_simulator.workloads.repair.repair_quiet import QuietEnsembles
from triplicate_simulator.workloads.repair.rival_decommission import RivalDecommission
from triplicate_simulator.workloads.workload import Workload

MACHINES_LEFT = 3
"""Machines of which no bookie may be gone for good: as many as an ensemble needs."""
ROT_SHARE = 0.4
"""Share of the losses that begin with rotten copies."""
DECOMMISSION_POINTS = ("autorecovery.copied", "autorecovery.decommission", "autorecovery.decommission_removal")
REPAIR_POINTS = ("autorecovery.copied", "autorecovery.complete", "autorecovery.recover")
UNREACHABLE_SHARE = 0.4
"""Share of the losses after which a worker cannot reach the metadata."""
HEALING_S = 240.0
"""Once writers and readers have ended, every ledger must have its full copies within this virtual time."""
POINTS = {
    "repair.copied": "autorecovery.copied",
    "repair.completed": "autorecovery.complete",
    "repair.recovered": "autorecovery.recover",
    "repair.bad_copy": "autorecovery.bad_copy",
}
"""Counts of visits of fault points."""
TRACES = {
    "repair.metadata_conflict": "autorecovery.metadata_conflict",
    "repair.auditor_elected": "autorecovery.auditor_elected",
    "repair.lock_lost": "metadata.replication_lock_lost",
    "repair.unneeded_copies_deleted": "autorecovery.unneeded_copies_deleted",
    "repair.left_short": "client.ledger_marked",
    "log.raised": "log.rewritten",
}
"""Counts of facts."""
OUTCOMES = {"repair.repaired": "repaired", "repair.open_ledger_grace": "grace period", "repair.writer_alive": "has a writer"}
"""Counts of ends of repairs."""


class RepairWorkload(Workload):
    """The actors are described in `RepairLoad`."""

    name = "repairs"
    load_type = RepairLoad
    checkers: ClassVar[dict[str, Checker]] = {**REPAIR_CHECKERS, **REQUEST_CHECKERS}
    rooms: ClassVar[tuple[str, ...]] = ("client", "autorecovery")
    counted: ClassVar[tuple[str, ...]] = (
        "acknowledged",
        "copyfound",
        "copiesnamed",
        "writerheldgone",
        "ledgers_marked",
        "passes",
        "passes_beside_workers",
        "repair.repaired",
        "repair.locked",
        "repair.open_ledger_grace",
        "machines_lost",
        "markdeleted",
        "storedinracks",
        "decommissions",
        "decommission.interrupted",
        "rivals_refused",
        "refills",
        "copiescounted",
        "ensemblechosen",
        "limboended",
        "segmentraised",
        "segmentkept",
        "log.acknowledged",
        *POINTS,
        *TRACES,
    )

    def __init__(self, context: RunContext, load: RepairLoad) -> None:
        super().__init__(context, load)
        options = context.cluster.options
        options.client_settings = load.settings(options.client_settings)
        settings_of = options.bookie_settings
        by_registration = load.uses_locations and not load.location_table
        options.bookie_settings = lambda name: replace(
            settings_of(name),
            scrub_interval_s=load.scrub_interval_s,
            scrub_share_of_time=1.0,
            network_location=RACKS[MACHINES[name]] if by_registration else "",
        )
        if load.unneeded_wait_s:
            options.bookie_chores = self._delete_unneeded_copies
        self.model = RepairModel(context, load)
        self._log = RepairLog(context, self.model.log) if self.model.log is not None else None
        self._working: list[asyncio.Task[None]] = []
        """Actors that end by themselves when faults are over."""
        self._healing: list[asyncio.Task[None]] = []
        """Actors that end when everything is repaired."""

    def _delete_unneeded_copies(self, host: Host, metadata: ClusterMetadata, bookie: Bookie) -> None:
        settings = self.context.cluster.options.client_settings

        async def delete() -> None:
            async with Client(host, metadata, settings) as client:
                await UnneededCopies(client, bookie.bookie_id, bookie.storage, self.model.load.unneeded_wait_s).run()

        bookie.add_chore("unneeded copies", delete)

    @classmethod
    def draw(cls, rng: random.Random) -> RepairLoad:
        return draw_load(rng)

    @classmethod
    def machines(cls, load: RepairLoad) -> Mapping[str, str]:
        return MACHINES

    @classmethod
    def clients(cls, load: RepairLoad) -> tuple[str, ...]:
        writers = [f"writer-{number}" for number in range(1, len(load.writers) + 1)]
        workers = [f"worker-{number}" for number in range(1, load.workers + 1)]
        # Workers are listed twice, so that they are struck more often.
        operators = ["operator", *([Decommissioner.NAME] * 2 if load.decommission else [])]
        return (*writers, *workers, *workers, *operators, "recoverer-1", *log_writer_names(load))

    @classmethod
    def smaller(cls, load: RepairLoad) -> Iterator[RepairLoad]:
        return smaller(load)

    @classmethod
    def losses_max(cls, load: RepairLoad) -> int:
        """None by other faults: `draw_further_faults` draws losses that wait for one another."""
        return 0

    @classmethod
    def draw_further_faults(cls, rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
        targets = replace(targets, losses_max=1)
        struck: dict[str, str] = {}
        faults: list[Fault] = []
        rots = False
        for at_s in sorted(duration_s * rng.uniform(0.1, 0.8) for _ in range(rng.choice([1, 2, 2, 3]))):
            rots = rng.random() < ROT_SHARE
            fault = draw_copies_rot(rng, targets, at_s) if rots else draw_disks_lost(rng, targets, at_s)
            if fault is None or fault.target in struck or (rots and fault.other in struck):
                continue
            machine = MACHINES[fault.target]
            if len({MACHINES[name] for name in MACHINES if MACHINES[name] not in (machine, *struck.values())}) < MACHINES_LEFT:
                continue
            others = [name for name in MACHINES if MACHINES[name] == machine and name not in (fault.target, *struck)]
            if others and not rots and rng.random() < 0.5:
                fault = replace(fault, options={**fault.options, "others": " ".join(others)})
            if not rots and rng.random() < 0.7:
                fault = replace(fault, other="writer-1", lasts_s=14.0)
            struck.update(dict.fromkeys([fault.target, *str(fault.options.get("others", "")).split()], machine))
            faults += [*_moments(rng, at_s), fault]
        if rots and faults and faults[-1].kind == "copies_rot" and rng.random() < 0.7:
            # No loss follows it, so that it may stay for the scrubber.
            faults[-1] = replace(faults[-1], options={**faults[-1].options, "stays": True})
        faults += [
            Fault("crash_at", at_s, Decommissioner.NAME, lasts_s=1.0, options={"point": rng.choice(DECOMMISSION_POINTS), "after": 0})
            for at_s in DECOMMISSIONS_S
        ]
        losses_s = [fault.at_s for fault in faults if fault.target in struck]
        faults += draw_replacements(random.Random(f"replacements {rng.random()}"), targets, tuple(struck), duration_s)
        return (*faults, *draw_unreachable_workers(random.Random(f"unreachable {rng.random()}"), losses_s))

    async def begin(self) -> None:
        model, load, keep = self.model, self.load, self.context.keep_running
        await self.context.cluster.client("administrator-of-repairs").run(self._prepare)
        if self._log is not None:
            await self._log.begin(load)
        for number, kind in enumerate(load.writers, 1):
            name = f"writer-{number}"
            self._working.append(keep(name, LedgerWriterActor(model, name, kind)))
            self._working.append(keep(f"tailer-{number}", LedgerTailer(model, f"tailer-{number}", name)))
        self._working.append(keep("recoverer-1", LedgerRecoverer(model, "recoverer-1")))
        self._working.append(keep("prober", LedgerProber(model, "prober")))
        self._working.append(keep("operator", PassByHand(model, "operator")))
        if load.decommission:
            self._working.append(keep(Decommissioner.NAME, Decommissioner(model)))
        if load.rival:
            self._working.append(self.context.world.loop.start_task(RivalDecommission(model).run(), name=RivalDecommission.NAME))
        if not load.daemons:
            self._healing.append(keep("marker", LossMarker(model, "marker")))
        self._healing.append(keep("refiller", RefillByHand(model)))
        worker = RepairDaemon if load.daemons else RepairWorker
        for number in range(1, load.workers + 1):
            self._healing.append(keep(f"worker-{number}", worker(model, f"worker-{number}")))

    async def _prepare(self, client: Client) -> None:
        """Record that the periodic checks have just run, since the first ones of a new cluster wait for minutes; state the racks."""
        for check in PeriodicCheck:
            await client.metadata.under_replication.set_check_time_ms(check, client.host.clock.wall_us() // 1000)
        if self.load.location_table:
            for machine, location in RACKS.items():
                await client.metadata.network_locations.set(machine, location)

    async def finish(self) -> None:
        context, model = self.context, self.model
        await context.finish_by_deadline(self._working)
        if self._log is not None:
            await self._log.finish_writing()
        model.retire_all()
        context.deadline_s = max(context.deadline_s, context.time() + HEALING_S)
        watch = HealingWatch(model)
        await context.finish_by_deadline([context.keep_running("watch", watch)])
        if watch.incomplete:
            lacking = ", ".join(f"{ledger_id} ({why})" for ledger_id, why in sorted(watch.incomplete.items()))
            context.problems.append(f"no progress: ledgers are not repaired: {lacking}")
        model.healed = True
        context.deadline_s = max(context.deadline_s, context.time() + PROGRESS_S)
        await context.finish_by_deadline(self._healing)
        self._note_facts()
        if self._log is not None:
            await self._log.finish()
        if self.load.uses_locations:
            await context.finish_by_deadline([context.keep_running("chooser", QuietEnsembles(model))])
        # Lost bookies are no excuse any more, since no ledger names them.
        context.history.destroyed = {}
        audit = context.keep_running("audit", CopyAudit(model))
        await context.finish_by_deadline([audit, context.keep_running(FinalLedgerReader.NAME, FinalLedgerReader(model))])

    def _note_facts(self) -> None:
        """Record decisions of workers and recoveries that only their traces show."""
        history, looked_s = self.context.history, dict[tuple[str, str], float]()
        for fact in self.context.world.recorder.facts:
            facts = dict(fact.facts)
            if fact.kind == "client.length_not_known":
                history.add(LengthSubstituted(fact.time_s, int(str(facts["ledger"]))))
            elif fact.kind == "autorecovery.rearranged":
                left, named = (tuple(str(facts[name]).split(",")) for name in ("left", "named"))
                history.add(Rearranged(fact.time_s, fact.node, int(str(facts["ledger"])), int(str(facts["entry"])), left, named))
            elif fact.kind == "autorecovery.view":
                looked_s[fact.node, str(facts["ledger"])] = fact.time_s
            elif fact.kind == "autorecovery.writer_gone" and facts["state"] == "open":
                began_s = looked_s[fact.node, str(facts["ledger"])]
                gone = WriterHeldGone(began_s, fact.time_s, fact.node, int(str(facts["ledger"])), self.load.grace_s)
                history.add(gone)

    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys(self.counted, 0)
        world = self.context.world
        lost = {MACHINES[name] for name in self.context.lost_bookies}
        found = [
            *event_counts(self.context.history).items(),
            *self.model.counts.items(),
            *((name, world.points.reached.get(point, 0)) for name, point in POINTS.items()),
            *((name, world.recorder.counts.get(kind, 0)) for name, kind in TRACES.items()),
            # Rare: few seeds open a segment in the moment without machines.
            ("log.reduced", world.recorder.counts.get("log.reduced", 0)),
            ("machines_lost", sum(all(name in self.context.lost_bookies for name in MACHINES if MACHINES[name] == one) for one in lost)),
        ]
        found += self._log.counts().items() if self._log is not None else ()
        ends = [dict(fact.facts)["outcome"] for fact in world.recorder.facts if fact.kind == "autorecovery.ledger"]
        found += [(name, ends.count(outcome)) for name, outcome in OUTCOMES.items()]
        for name, count in found:
            counts[name] = counts.get(name, 0) + count
        return counts


def draw_replacements(rng: random.Random, targets: FaultTargets, others: tuple[str, ...], duration_s: float) -> Iterator[Fault]:
    """Draw replaced disks of a bookie that is not lost for good, and moments without most machines."""
    spare = replace(targets, bookies=tuple(name for name in targets.bookies if name not in others))
    for _ in range(rng.choice([0, 1, 1, 2])):
        fault = draw_disks_replaced(rng, spare, duration_s * rng.uniform(0.1, 0.7))
        if fault is not None:
            yield fault
    for _ in range(rng.choice([0, 1, 1])):
        yield draw_machines_away(rng, spare, duration_s * rng.uniform(0.1, 0.8))


def draw_unreachable_workers(rng: random.Random, losses_s: Sequence[float]) -> Iterator[Fault]:
    """Draw outages of the metadata for a process that repairs a ledger: the release of its lock fails, and its session lives."""
    for at_s in losses_s:
        if rng.random() < UNREACHABLE_SHARE:
            options: dict[str, Value] = {"point": rng.choice(REPAIR_POINTS), "after": rng.choice([0, 0, 1])}
            at_s += rng.uniform(0.0, 4.0)
            yield Fault("metadata_unreachable", at_s, lasts_s=rng.choice(metadata_faults.OUTAGES_S), options=options)


def _moments(rng: random.Random, at_s: float) -> list[Fault]:
    """Faults of decisive moments after a loss: workers lose their lock, or die; others change the metadata."""
    found: list[Fault] = []
    after_s = at_s + rng.uniform(0.5, 3.0)
    if rng.random() < 0.6:
        options: dict[str, Value] = {"point": rng.choice(("autorecovery.copied", "autorecovery.complete")), "after": 0, "expires": True}
        found.append(Fault("pause", after_s, "worker-1", lasts_s=4.0, options=options))
    if rng.random() < 0.4:
        options = {"point": rng.choice(("autorecovery.copied", "autorecovery.complete")), "after": rng.choice([0, 1]), "silent": True}
        found.append(Fault("crash_at", after_s, "worker-2", lasts_s=0.5, options=options))
    if rng.random() < 0.5:
        found.append(Fault("metadata_conflict", after_s, lasts_s=10.0, options={"rate": 0.7}))
    return found
