"""The ledger workload: writers write ledger after ledger and die, tailers follow, others recover, and everything is read at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from typing import ClassVar

from triplicate.sim.recorder import Fact
from triplicate_simulator.checkers.hedge_rules import Hedged
from triplicate_simulator.checkers.history import History
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import LengthSubstituted
from triplicate_simulator.cluster.run_context import PROGRESS_S, RunContext
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad, draw_load, smaller_loads
from triplicate_simulator.workloads.ledger.ledger_model import LedgerModel
from triplicate_simulator.workloads.ledger.ledger_readers import FinalLedgerReader, LedgerProber, LedgerTailer
from triplicate_simulator.workloads.ledger.ledger_recoverers import LedgerRecoverer
from triplicate_simulator.workloads.ledger.ledger_writers import LedgerWriterActor
from triplicate_simulator.workloads.ledger.space_check import SpaceCheck
from triplicate_simulator.workloads.workload import Workload


class LedgerWorkload(Workload):
    """The actors are described in `LedgerLoad`."""

    name = "ledgers"
    load_type = LedgerLoad
    checkers = LEDGER_CHECKERS
    ambushed = True
    counted: ClassVar[tuple[str, ...]] = (
        "acknowledged",
        "tailed",
        "read",
        "ended",
        "copy",
        "confirmed",
        "metadatawritten",
        "ledgers",
        "closed",
        "fenced",
        "forced",
        "woken",
        "window_full",
        "deleted",
        "recoveries",
        "recoveries_by_several",
        "recoveries_of_living",
        "recoveries_restarted",
        "recoveries_skewed",
        "breaks",
        "ensemble_changes",
        "undeletions",
        "clearances",
        "refused_starts",
        "compactions",
        "logs_given_back",
        "ledgers_dropped",
        "rebuilds",
        "reserves_released",
        "directories_passed_over",
    )

    def __init__(self, context: RunContext, load: LedgerLoad) -> None:
        super().__init__(context, load)
        options = context.cluster.options
        options.client_settings = load.settings(options.client_settings)
        self.model = LedgerModel(context, load)
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    def draw(cls, rng: random.Random) -> LedgerLoad:
        return draw_load(rng)

    @classmethod
    def clients(cls, load: LedgerLoad) -> tuple[str, ...]:
        writers = [f"writer-{number}" for number in range(1, len(load.writers) + 1)]
        tailers = [f"tailer-{number}" for number in range(1, load.tailers * len(load.writers) + 1)]
        # Writers are listed twice, so that they are struck more often: recoveries begin with a writer's end.
        return (*writers, *writers, *tailers, *(f"recoverer-{number}" for number in range(1, load.recoverers + 1)))

    @classmethod
    def smaller(cls, load: LedgerLoad) -> Iterator[LedgerLoad]:
        return smaller_loads(load)

    async def begin(self) -> None:
        model, keep = self.model, self.context.keep_running
        for number, kind in enumerate(self.load.writers, 1):
            self._tasks.append(keep(f"writer-{number}", LedgerWriterActor(model, f"writer-{number}", kind)))
        for number in range(1, self.load.recoverers + 1):
            self._tasks.append(keep(f"recoverer-{number}", LedgerRecoverer(model, f"recoverer-{number}")))
        for number in range(self.load.tailers * len(self.load.writers)):
            name, writer = f"tailer-{number + 1}", f"writer-{number % len(self.load.writers) + 1}"
            self._tasks.append(keep(name, LedgerTailer(model, name, writer)))
        self._tasks.append(keep("prober", LedgerProber(model, "prober")))

    async def finish(self) -> None:
        await self.context.finish_by_deadline(self._tasks)
        self.model.retire_all()
        for fact in self.context.world.recorder.facts:
            if fact.kind == "client.length_not_known":
                self.context.history.add(LengthSubstituted(fact.time_s, int(str(dict(fact.facts)["ledger"]))))
        self.context.history.destroyed = self.context.destroyed_bookies
        # An actor that waits for a lost entry may have used up the time. The loss must still be found.
        self.context.deadline_s = max(self.context.deadline_s, self.context.time() + PROGRESS_S)
        await self.context.finish_by_deadline([self.context.keep_running(FinalLedgerReader.NAME, FinalLedgerReader(self.model))])
        share = self.context.cluster.options.client_settings.hedge_read_share
        self.context.history.events += hedged_reads(self.context.world.recorder.facts, share)
        await SpaceCheck(self.model).carry_out()

    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys(self.counted, 0)
        for name, count in [*event_counts(self.context.history).items(), *self.model.counts.items()]:
            counts[name] = counts.get(name, 0) + count
        counts["refused_starts"] = self.context.refused_starts
        return counts


def event_counts(history: History) -> dict[str, int]:
    """Number of events by type, under the type's name in lower case."""
    counts: dict[str, int] = {}
    for event in history.events:
        name = type(event).__name__.lower()
        counts[name] = counts.get(name, 0) + 1
    return counts


def hedged_reads(facts: Iterable[Fact], share: float) -> list[Hedged]:
    """The additional reads among the facts of a run."""
    found: list[Hedged] = []
    for fact in facts:
        if fact.kind == "client.read_hedged":
            given = dict(fact.facts)
            client = f"{fact.node} ({given['wire']})"
            found.append(Hedged(fact.time_s, client, str(given["reason"]), int(str(given["reads"])), int(str(given["spent"])), share))
    return found
