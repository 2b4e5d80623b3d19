"""The play of ledgers: writers write and die, tailers follow, readers probe, other clients recover."""

from __future__ import annotations

import asyncio
import random
from typing import Any, ClassVar

from triplicate.client import Client
from triplicate.sim.checkers import CHECKERS
from triplicate.sim.plays.base import Play
from triplicate.sim.plays.ledger_actors import Book, FinalReader, Prober, Recoverer, Tailer, Writer
from triplicate.sim.plays.ledger_load import LedgerLoad, draw_load
from triplicate.sim.stage import Stage


class LedgerPlay(Play):
    """Each writer has a ledger of its own."""

    name = "ledgers"
    load_type = LedgerLoad
    checkers = CHECKERS
    counted: ClassVar[tuple[str, ...]] = ("acknowledged", "tailed", "read", "ended", "copy", "ensemble_changes")

    def __init__(self, stage: Stage, load: LedgerLoad) -> None:
        super().__init__(stage, load)
        self._books = [Book(stage, load) for _ in range(load.writers)]
        self._tasks: list[asyncio.Task[None]] = []
        self._probers: list[asyncio.Task[None]] = []

    @classmethod
    def draw(cls, chance: random.Random) -> LedgerLoad:
        return draw_load(chance)

    @classmethod
    def clients(cls, load: LedgerLoad) -> tuple[str, ...]:
        numbers = range(1, load.writers + 1)
        return tuple(f"{role}-{number}" for number in numbers for role in ("writer", "tailer", "recoverer"))

    async def begin(self) -> None:
        for number, book in enumerate(self._books, 1):
            for role, make in (("writer", Writer), ("tailer", Tailer), ("recoverer", self._recoverer)):
                self._tasks.append(self.stage.keep(f"{role}-{number}", make(book, f"{role}-{number}")))
            self._probers.append(self.stage.keep(f"prober-{number}", Prober(book, f"prober-{number}")))

    def _recoverer(self, book: Book, name: str) -> Any:
        recoverer = Recoverer(book, name)

        async def program(client: Client) -> None:
            await asyncio.sleep(max(0.0, self.load.recovery_s - self.stage.time()))
            await recoverer(client)

        return program

    async def finish(self) -> None:
        await self.stage.by_deadline(self._tasks)
        for prober in self._probers:
            prober.cancel()
        finals = [
            self.stage.keep(f"final-{number}", FinalReader(book))
            for number, book in enumerate(self._books, 1)
            if book.ledger_id is not None
        ]
        await self.stage.by_deadline(finals)

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for event in self.stage.history.events:
            name = type(event).__name__.lower()
            counts[name] = counts.get(name, 0) + 1
        counts["ensemble_changes"] = sum(book.writer.ensemble_changes for book in self._books if book.writer is not None)
        return counts
