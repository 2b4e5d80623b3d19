"""Recoverers of the ledger workload: they close abandoned ledgers, and sometimes ledgers that a writer still writes."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import BookieError, EnvironmentFault, LedgerError, LedgerExists, MetadataError, NoSuchLedger
from triplicate.sim.loop import context_of
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

    def __init__(self, shelf: LedgerModel, name: str) -> None:
        self._shelf = shelf
        self._stage = shelf.stage
        self._name = name
        self._current: KnownLedger | None = None
        self._returns: dict[int, float] = {}
        """Deleted ledgers that are to be restored, and when."""
        self._chance = self._stage.chance(name)

    async def __call__(self, client: Client) -> None:
        if self._current is not None:
            self._shelf.count("recoveries_restarted")
        while True:
            book = self._current or self._next()
            if book is not None:
                self._current = book
                await self._recover(client, book)
                self._current = None
            elif (ledger_id := self._wanted_back()) is not None:
                await self._bring_back(client, ledger_id)
            elif self._stage.quiet.is_set() and not self._shelf.writing and all(book.ended for book in self._shelf.books):
                return
            else:
                await asyncio.sleep(LOOK_S)

    def _next(self) -> KnownLedger | None:
        """The ledger that has been due for longest. Once faults are over every ledger without writer is due."""
        self._shelf.look()
        now, quiet = self._stage.time(), self._stage.quiet.is_set()
        due = [book for book in self._shelf.books if book.due.get(self._name, float("inf")) <= now]
        if not due and quiet:
            due = [book for book in self._shelf.books if not book.ended and not book.has_writer and self._name not in book.due]
        return min(due, key=lambda book: book.due.get(self._name, now), default=None)

    async def _recover(self, client: Client, book: KnownLedger) -> None:
        others = [other for other in book.due if other != self._name]
        for _ in range(ATTEMPTS):
            was_ended, had_writer = book.ended, book.has_writer
            is_skewed = book.has_writer and not self._stage.quiet.is_set() and self._chance.random() < self._shelf.load.skew_share
            try:
                if is_skewed:
                    await self._skew(book)
                async with await client.recover(book.ledger_id, password=PASSWORD) as reader:
                    self._shelf.note_end(book.ledger_id, self._name, reader.last_add_confirmed, reader.length)
            except (BookieError, LedgerError, MetadataError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                if isinstance(error, NoSuchLedger):
                    assert book.deleted, f"{self._name} was told that ledger {book.ledger_id} is not there"
                    book.ended = True
                    book.due.pop(self._name, None)
                    return
                await asyncio.sleep(0.3)
            else:
                book.due.pop(self._name, None)
                self._shelf.count("recoveries" if not was_ended else "recoveries_of_closed")
                if others:
                    self._shelf.count("recoveries_by_several")
                if had_writer:
                    self._shelf.count("recoveries_of_living")
                if self._chance.random() < self._shelf.load.delete_share:
                    await self._delete(client, book)
                return
        book.due[self._name] = self._stage.time() + LATER_S

    async def _skew(self, book: KnownLedger) -> None:
        """Slow the writer's links to all bookies but one, lose the recovery's first message to another of them, and wait until entries are
        in flight, so that writer and recoverer have reached different bookies."""
        network, chance, writer = self._stage.world.network, self._chance, book.writer
        ensemble = list(writer.metadata.last_segment.ensemble)
        chance.shuffle(ensemble)
        near, unheard, *others = ensemble
        links = {(book.writer_name, name): chance.choice(WRITER_FACTORS) for name in (unheard, *others)}
        links |= {(name, self._name): chance.choice(RECOVERER_FACTORS) for name in (near, *others)}
        for (source, target), factor in links.items():
            network.slow(source, target, factor)

        def straighten() -> None:
            network.tears.pop((self._name, unheard), None)
            for source, target in links:
                network.slow(source, target, 1.0)

        loop = self._stage.world.loop
        # In the world's context: it must be undone even if the recoverer is killed meanwhile.
        loop.call_later(SKEW_S, straighten, context=context_of(None))
        for _ in range(int(SKEW_S / 2 / STEP_S)):
            if writer.last_add_pushed > writer.last_add_confirmed:
                break
            await asyncio.sleep(STEP_S)
        if chance.random() < 0.7:
            network.reset_at_next_write(self._name, unheard)
        self._shelf.count("recoveries_skewed")

    async def _delete(self, client: Client, book: KnownLedger) -> None:
        """Delete a closed ledger. Bookies drop it at their next garbage collection."""
        await asyncio.sleep(self._chance.uniform(0.0, 1.0))
        book.deleted = True
        try:
            await client.delete(book.ledger_id)
        except MetadataError as error:
            # The outcome is unknown.
            self._stage.note_unknown(error)
        else:
            self._shelf.count("deletions")
            if self._stage.plan.storage.trash_period_s and self._chance.random() < self._shelf.load.undelete_share:
                self._want_back(book)

    def _want_back(self, book: KnownLedger) -> None:
        """Schedule its restoration, which may happen in another life of this recoverer."""
        book.wanted_back = True
        wait_s = self._chance.uniform(0.0, self._stage.plan.storage.trash_period_s * 0.9)
        self._returns[book.ledger_id] = self._stage.time() + wait_s

    def _wanted_back(self) -> int | None:
        """A deleted ledger that is due for restoration."""
        now, quiet = self._stage.time(), self._stage.quiet.is_set()
        return next((ledger_id for ledger_id, when_s in self._returns.items() if when_s <= now or quiet), None)

    async def _bring_back(self, client: Client, ledger_id: int) -> None:
        del self._returns[ledger_id]
        try:
            await client.undelete(ledger_id)
        except (MetadataError, NoSuchLedger, LedgerExists) as error:
            # Too late, or the outcome is unknown.
            self._stage.note_unknown(error)
