"""What the clients of a scenario do, each writing down what it sees: a writer, tailers, a prober, recoverers, a final reader.

They use the public client alone. An outcome that they cannot know is not written down.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from triplicate.client import Client, LedgerReader, LedgerWriter
from triplicate.errors import (
    ArgumentError,
    BookieError,
    EnvironmentFault,
    LedgerClosed,
    LedgerError,
    LedgerFenced,
    MetadataError,
    NoSuchEntry,
    NotEnoughBookies,
    OutcomeUnknown,
    WindowFull,
)
from triplicate.ledger import Entry, absent_answers_needed, write_set
from triplicate.sim.checkers import Acknowledged, Copy, Ended, History, Read, Sent, Tailed
from triplicate.sim.plays.ledger_load import LedgerLoad
from triplicate.sim.stage import Stage

PASSWORD = b"simulated"


@dataclass
class Book:
    """What the clients of one ledger share: the stage, and the ledger once it is there."""

    stage: Stage
    load: LedgerLoad
    ledger_id: int | None = None
    ledger_known: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledged_to: int = -1
    acknowledged_lac: int = -1
    """What the last acknowledged entry says is confirmed: readers must know it at once."""
    writer: LedgerWriter | None = None

    @property
    def history(self) -> History:
        return self.stage.history

    def time(self) -> float:
        return self.stage.time()

    def chance(self, *purpose: object) -> random.Random:
        return self.stage.chance(*purpose)

    def note_unknown(self, error: BaseException) -> None:
        self.stage.note_unknown(error)

    async def ledger(self) -> int:
        """The ledger's id, once the writer has made it."""
        await self.ledger_known.wait()
        assert self.ledger_id is not None
        return self.ledger_id


class Writer:
    """Appends in bursts, by all three kinds of append, until it is killed, fenced, or done."""

    def __init__(self, stage: Book, name: str = "writer") -> None:
        self._stage = stage
        self._name = name
        self._chance = stage.chance(name)
        self._pushed_lac: dict[int, int] = {}

    async def __call__(self, client: Client) -> None:
        load, stage = self._stage.load, self._stage
        try:
            writer = await client.create(
                ensemble_size=load.ensemble_size, write_quorum=load.write_quorum, ack_quorum=load.ack_quorum, password=PASSWORD
            )
        except (NotEnoughBookies, MetadataError) as error:
            stage.note_unknown(error)
            return
        stage.ledger_id = writer.ledger_id
        stage.writer = writer
        stage.ledger_known.set()
        number = 0
        try:
            while number < load.entries:
                for _ in range(self._chance.randrange(1, 6)):
                    number += self._append(writer, number)
                await asyncio.sleep(self._chance.expovariate(1.0 / load.pause_mean_s))
            # Killed before the ledger is closed, in most runs: an idle writer's tail is what recovery must find.
            await asyncio.sleep(stage.stage.plan.duration_s)
        except (LedgerFenced, LedgerClosed, OutcomeUnknown, LedgerError) as error:
            stage.note_unknown(error)

    def _append(self, writer: LedgerWriter, number: int) -> int:
        """Append one or a few entries without waiting; returns how many."""
        count = self._chance.randrange(2, 6) if self._chance.random() < 0.15 else 1
        payloads = [self._payload(number + index) for index in range(count)]
        first, lac = writer.last_add_pushed + 1, writer.last_add_confirmed
        try:
            future: asyncio.Future[int] | asyncio.Future[range]
            future = writer.append_nowait(payloads[0]) if count == 1 else writer.append_many_nowait(payloads)
        except (WindowFull, ArgumentError):
            # No room, or more at once than the window ever holds: the pause between bursts comes next.
            return 0
        for index, payload in enumerate(payloads):
            self._stage.history.add(Sent(self._stage.time(), self._name, writer.ledger_id, first + index, payload))
            self._pushed_lac[first + index] = lac
        future.add_done_callback(lambda done: self._settled(writer.ledger_id, range(first, first + count), done))
        return count

    def _settled(self, ledger_id: int, entry_ids: range, done: asyncio.Future[int] | asyncio.Future[range]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._stage.note_unknown(error)
            return
        result = done.result()
        assert result == (entry_ids if isinstance(result, range) else entry_ids[0]), f"appended as {entry_ids}, acknowledged as {result}"
        for entry_id in entry_ids:
            self._stage.history.add(Acknowledged(self._stage.time(), self._name, ledger_id, entry_id))
            self._stage.acknowledged_lac = self._pushed_lac.pop(entry_id)
        self._stage.acknowledged_to = entry_ids[-1]

    def _payload(self, number: int) -> bytes:
        head = f"{self._name} {number} ".encode()
        return head + b"." * self._chance.randrange(self._stage.load.payload_high_bytes)


class Tailer:
    """Follows the ledger to its end."""

    def __init__(self, stage: Book, name: str) -> None:
        self._stage = stage
        self._name = name
        self._next = 0

    async def __call__(self, client: Client) -> None:
        ledger_id = await self._stage.ledger()
        while True:
            try:
                if await self._follow(client, ledger_id):
                    return
            except (BookieError, MetadataError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                await asyncio.sleep(0.2)

    async def _follow(self, client: Client, ledger_id: int) -> bool:
        reader = await client.open(ledger_id, password=PASSWORD)
        async with reader, reader.tail(self._next) as tail:
            async for entry in tail:
                assert entry.entry_id == self._next, f"{self._name} was given entry {entry.entry_id} for {self._next}"
                self._next += 1
                self._stage.history.add(Tailed(self._stage.time(), self._name, ledger_id, entry.entry_id, entry.payload))
            await note_end(self._stage, reader, self._name)
        return True


class Prober:
    """Reads entries as soon as they are acknowledged: through the reader, and from their bookies one by one."""

    def __init__(self, stage: Book, name: str = "prober") -> None:
        self._stage = stage
        self._name = name
        self._chance = stage.chance(name)

    async def __call__(self, client: Client) -> None:
        ledger_id = await self._stage.ledger()
        while True:
            await asyncio.sleep(self._chance.expovariate(20.0))
            if self._stage.acknowledged_to < 0:
                continue
            try:
                async with await client.open(ledger_id, password=PASSWORD) as reader:
                    if self._chance.random() < 0.5:
                        await self._read_confirmed(reader)
                    else:
                        await self._read_copies(reader)
            except (BookieError, MetadataError, EnvironmentFault) as error:
                self._stage.note_unknown(error)

    async def _read_confirmed(self, reader: LedgerReader) -> None:
        """What the last acknowledged entry calls confirmed is known to every reader at once."""
        if self._stage.acknowledged_lac < 0:
            return
        entry_id = max(0, self._stage.acknowledged_lac - self._chance.choice([0, 0, 0, self._chance.randrange(50)]))
        await read_one(self._stage, reader, self._name, entry_id)

    async def _read_copies(self, reader: LedgerReader) -> None:
        """An acknowledged entry is on an ack quorum of its write set; if so many say no that it cannot be, it is lost."""
        entry_id = max(0, self._stage.acknowledged_to - self._chance.choice([0, 0, self._chance.randrange(50)]))
        started_s = self._stage.time()
        await reader.refresh_metadata()
        metadata = reader.metadata
        absent = 0
        for bookie_id in holders(reader, entry_id):
            try:
                entry = await reader.read_from(bookie_id, entry_id)
            except (BookieError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                continue
            if entry is not None:
                self._note(started_s, reader.ledger_id, entry_id, entry.payload)
                continue
            absent += 1
            if absent >= absent_answers_needed(metadata.write_quorum, metadata.ack_quorum):
                self._note(started_s, reader.ledger_id, entry_id, None)

    def _note(self, started_s: float, ledger_id: int, entry_id: int, payload: bytes | None) -> None:
        self._stage.history.add(Read(started_s, self._stage.time(), self._name, ledger_id, entry_id, payload))


class Recoverer:
    """Recovers the ledger, as often as it takes."""

    def __init__(self, stage: Book, name: str) -> None:
        self._stage = stage
        self._name = name
        self.attempts = 0

    async def __call__(self, client: Client) -> None:
        ledger_id = await self._stage.ledger()
        while True:
            self.attempts += 1
            try:
                async with await client.recover(ledger_id, password=PASSWORD) as reader:
                    await note_end(self._stage, reader, self._name)
                    return
            except (BookieError, LedgerError, MetadataError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                await asyncio.sleep(0.5)


class FinalReader:
    """When all is over: reads everything, then every bookie's own copies."""

    NAME = "final"

    def __init__(self, stage: Book) -> None:
        self._stage = stage

    async def __call__(self, client: Client) -> None:
        stage, history = self._stage, self._stage.history
        ledger_id = await stage.ledger()
        async with await client.open(ledger_id, password=PASSWORD) as reader:
            await note_end(stage, reader, self.NAME)
            history.final_reader = self.NAME
            history.ack_quorums[ledger_id] = reader.metadata.ack_quorum
            last = reader.last_add_confirmed
            if last < 0:
                return
            started_s = stage.time()
            for entry in await reader.read(0, last):
                history.add(Read(started_s, stage.time(), self.NAME, ledger_id, entry.entry_id, entry.payload))
            for entry_id in range(last + 1):
                for bookie_id in holders(reader, entry_id):
                    copy = await self._read_copy(reader, bookie_id, entry_id)
                    history.add(Copy(bookie_id, ledger_id, entry_id, None if copy is None else copy.payload))

    async def _read_copy(self, reader: LedgerReader, bookie_id: str, entry_id: int) -> Entry | None:
        """Ask until there is an answer: a bookie whose session was lost may have to register again."""
        while True:
            try:
                return await reader.read_from(bookie_id, entry_id)
            except BookieError as error:
                self._stage.note_unknown(error)
                await asyncio.sleep(0.5)


def holders(reader: LedgerReader, entry_id: int) -> list[str]:
    """The bookies that the metadata names for an entry."""
    metadata = reader.metadata
    ensemble = metadata.ensemble_of(entry_id)
    return [ensemble[position] for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum)]


async def read_one(stage: Book, reader: LedgerReader, name: str, entry_id: int) -> None:
    """Read an entry through the reader and note what it says."""
    started_s = stage.time()
    try:
        entries = await reader.read(entry_id, entry_id)
    except NoSuchEntry:
        stage.history.add(Read(started_s, stage.time(), name, reader.ledger_id, entry_id, None))
    else:
        stage.history.add(Read(started_s, stage.time(), name, reader.ledger_id, entry_id, entries[0].payload))


async def note_end(stage: Book, reader: LedgerReader, name: str) -> None:
    """Note where the ledger ends, which must be closed."""
    if not reader.is_closed:
        await reader.refresh_metadata()
    assert reader.is_closed, f"{name} was told that ledger {reader.ledger_id} has ended, and it is not closed"
    stage.history.add(Ended(stage.time(), name, reader.ledger_id, reader.last_add_confirmed))
