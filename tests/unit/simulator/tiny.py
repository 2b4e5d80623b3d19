"""A play as small as can be: one node appends to one ledger, and reads it when all is over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from triplicate.client import Client
from triplicate.errors import BookieError, EnvironmentFault, LedgerError, MetadataError
from triplicate_simulator import Acknowledged, Fault, History, Plan, RunContext, Verdict, Workload


@dataclass(frozen=True)
class TinyLoad:
    entries: int = 60
    ack_quorum: int = 2
    complains: bool = False
    """The checker finds a violation once more than five entries are acknowledged."""


def nothing_is_found(history: History, verdict: Verdict) -> None:
    """Nothing is wrong, unless the load asks for it."""
    acknowledged = list(history.of(Acknowledged))
    verdict.decided += len(acknowledged)
    if history.final_reader == "complains" and len(acknowledged) > 5:
        verdict.violations.append(f"{len(acknowledged)} entries were acknowledged")


class TinyPlay(Workload):
    name = "tiny"
    load_type = TinyLoad
    checkers: ClassVar[Mapping[str, object]] = {"nothing_is_found": nothing_is_found}  # type: ignore[assignment]
    counted: ClassVar[tuple[str, ...]] = ("acknowledged", "never")

    def __init__(self, context: RunContext, load: TinyLoad) -> None:
        super().__init__(context, load)
        self._task: asyncio.Task[None] | None = None
        self._appended = 0
        if load.complains:
            context.history.final_reader = "complains"

    @classmethod
    def draw(cls, rng: random.Random) -> TinyLoad:
        return TinyLoad(rng.randrange(20, 60))

    @classmethod
    def clients(cls, load: TinyLoad) -> tuple[str, ...]:
        return ("writer",)

    @classmethod
    def smaller(cls, load: TinyLoad) -> Iterator[TinyLoad]:
        for entries in (load.entries // 4, load.entries // 2, load.entries - 1):
            if 0 < entries < load.entries:
                yield replace(load, entries=entries)

    async def begin(self) -> None:
        self._task = self.context.keep_running("writer", self._write)

    async def finish(self) -> None:
        assert self._task is not None
        await self.context.finish_by_deadline([self._task])

    def counts(self) -> dict[str, int]:
        return {"acknowledged": sum(1 for _ in self.context.history.of(Acknowledged))}

    async def _write(self, client: Client) -> None:
        """Ledger after ledger: each ends when something of it fails."""
        while self._appended < self.load.entries:
            try:
                async with await client.create(ack_quorum=self.load.ack_quorum, password=b"tiny") as writer:
                    while self._appended < self.load.entries:
                        entry_id = await writer.append(b"x" * 200)
                        self._appended += 1
                        self.context.history.add(Acknowledged(self.context.time(), "writer", writer.ledger_id, entry_id))
                        await asyncio.sleep(0.05)
            except (BookieError, LedgerError, MetadataError, EnvironmentFault) as error:
                self.context.count_unknown(error)
                await asyncio.sleep(0.2)


def tiny_plan(*faults: Fault, entries: int = 60, duration_s: float = 5.0, complains: bool = False) -> Plan:
    return Plan("tiny", TinyLoad(entries, complains=complains), faults, duration_s)
