"""Recoverers of the ledger workload: they close abandoned ledgers, and sometimes ledgers that a writer still writes."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import BookieError, EnvironmentFault, LedgerError, LedgerExists, MetadataError, NoSuchLedger
from triplicate.sim.virtual_loop import context_of
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD, KnownLedger, LedgerModel

LOOK_S = 0.2
"""Interval at which a recoverer looks for work."""
ATTEMPTS = 4
"""Failed attempts after which a recoverer turns to other ledgers for a while."""
LATER_S = 3.0
SKEW_S = 2.0
STEP_S = 0.005
WRITER_FACTORS = (1.0, 300.0, 600.0, 600.0)
"""Slowness of the writer's links in a skewed recovery. Most adds still finish before their timeout."""
RECOVERER_FACTORS = (1.0, 100.0, 100.0)


class LedgerRecoverer:
    """Recovers ledgers when they are due. In a new life it continues with the ledger at which it was killed."""

    def __init__(self, model: LedgerModel, name: str) -> None:
        self._model = model
        self._context = model.context
        self._name = name
        self._current: KnownLedger | None = None
        self._undeletes: dict[int, float] = {}
        """Deleted ledgers that are to be restored, and when."""
        self._rng = self._context.rng(name)

    async def __call__(self, client: Client) -> None:
        if self._current is not None:
            self._model.count("recoveries_restarted")
        while True:
            ledger = self._current or self._next()
            if ledger is not None:
                self._current = ledger
                await self._recover(client, ledger)
                self._current = None
            elif (ledger_id := self._next_undelete()) is not None:
                await self._undelete(client, ledger_id)
            elif self._context.faults_over.is_set() and not self._model.writing and all(ledger.ended for ledger in self._model.ledgers):
                return
            else:
                await asyncio.sleep(LOOK_S)

    def _next(self) -> KnownLedger | None:
        """The ledger that has been due for longest. Once faults are over every ledger without writer is due."""
        self._model.find_abandoned()
        now, faults_over = self._context.time(), self._context.faults_over.is_set()
        due = [ledger for ledger in self._model.ledgers if ledger.recoveries_due.get(self._name, float("inf")) <= now]
        if not due and faults_over:
            due = [
                ledger
                for ledger in self._model.ledgers
                if not ledger.ended and not ledger.has_writer and self._name not in ledger.recoveries_due
            ]
        return min(due, key=lambda ledger: ledger.recoveries_due.get(self._name, now), default=None)

    async def _recover(self, client: Client, ledger: KnownLedger) -> None:
        others = [other for other in ledger.recoveries_due if other != self._name]
        for _ in range(ATTEMPTS):
            was_ended, had_writer = ledger.ended, ledger.has_writer
            is_skewed = ledger.has_writer and not self._context.faults_over.is_set() and self._rng.random() < self._model.load.skew_share
            try:
                if is_skewed:
                    await self._skew(ledger)
                async with await client.recover(ledger.ledger_id, password=PASSWORD) as reader:
                    self._model.note_end(ledger.ledger_id, self._name, reader.last_add_confirmed, reader.length)
            except (BookieError, LedgerError, MetadataError, EnvironmentFault) as error:
                self._context.count_unknown(error)
                if isinstance(error, NoSuchLedger):
                    assert ledger.deleted, f"{self._name} found no ledger {ledger.ledger_id}"
                    ledger.ended = True
                    ledger.recoveries_due.pop(self._name, None)
                    return
                await asyncio.sleep(0.3)
            else:
                ledger.recoveries_due.pop(self._name, None)
                self._model.count("recoveries" if not was_ended else "recoveries_of_closed")
                if others:
                    self._model.count("recoveries_by_several")
                if had_writer:
                    self._model.count("recoveries_of_living")
                if self._rng.random() < self._model.load.delete_share:
                    await self._delete(client, ledger)
                return
        ledger.recoveries_due[self._name] = self._context.time() + LATER_S

    async def _skew(self, ledger: KnownLedger) -> None:
        """Slow the writer's links to all bookies but one, lose the recovery's first message to another of them, and wait until entries are
        in flight, so that writer and recoverer have reached different bookies."""
        network, rng, writer = self._context.world.network, self._rng, ledger.writer
        ensemble = list(writer.metadata.last_segment.ensemble)
        rng.shuffle(ensemble)
        near, unheard, *others = ensemble
        links = {(ledger.writer_name, name): rng.choice(WRITER_FACTORS) for name in (unheard, *others)}
        links |= {(name, self._name): rng.choice(RECOVERER_FACTORS) for name in (near, *others)}
        for (source, target), factor in links.items():
            network.slow(source, target, factor)

        def straighten() -> None:
            network.tears.pop((self._name, unheard), None)
            for source, target in links:
                network.slow(source, target, 1.0)

        loop = self._context.world.loop
        # In the world's context: it must be undone even if the recoverer is killed meanwhile.
        loop.call_later(SKEW_S, straighten, context=context_of(None))
        for _ in range(int(SKEW_S / 2 / STEP_S)):
            if writer.last_add_pushed > writer.last_add_confirmed:
                break
            await asyncio.sleep(STEP_S)
        if rng.random() < 0.7:
            network.reset_at_next_write(self._name, unheard)
        self._model.count("recoveries_skewed")

    async def _delete(self, client: Client, ledger: KnownLedger) -> None:
        """Delete a closed ledger. Bookies drop it at their next garbage collection."""
        await asyncio.sleep(self._rng.uniform(0.0, 1.0))
        ledger.deleted = True
        try:
            await client.delete(ledger.ledger_id)
        except MetadataError as error:
            # The outcome is unknown.
            self._context.count_unknown(error)
        else:
            self._model.count("deletions")
            if self._context.plan.storage.trash_period_s and self._rng.random() < self._model.load.undelete_share:
                self._schedule_undelete(ledger)

    def _schedule_undelete(self, ledger: KnownLedger) -> None:
        """Schedule its restoration, which may happen in another life of this recoverer."""
        ledger.undelete_requested = True
        wait_s = self._rng.uniform(0.0, self._context.plan.storage.trash_period_s * 0.9)
        self._undeletes[ledger.ledger_id] = self._context.time() + wait_s

    def _next_undelete(self) -> int | None:
        """A deleted ledger that is due for restoration."""
        now, faults_over = self._context.time(), self._context.faults_over.is_set()
        return next((ledger_id for ledger_id, when_s in self._undeletes.items() if when_s <= now or faults_over), None)

    async def _undelete(self, client: Client, ledger_id: int) -> None:
        del self._undeletes[ledger_id]
        try:
            await client.undelete(ledger_id)
        except (MetadataError, NoSuchLedger, LedgerExists) as error:
            # Too late, or the outcome is unknown.
            self._context.count_unknown(error)
