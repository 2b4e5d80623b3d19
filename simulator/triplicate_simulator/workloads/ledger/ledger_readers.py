"""Readers of the ledger workload: tailers follow, a prober uses every kind of read, a final reader reads everything.

They use the public client alone. An unknown outcome is not recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from triplicate.client import Client, LedgerReader
from triplicate.errors import (
    BookieError,
    BookieUnavailable,
    DigestMismatch,
    EnvironmentFault,
    MetadataError,
    NoSuchEntry,
    NoSuchLedger,
    ReadFailed,
    RequestTimeout,
    TooManyRequests,
)
from triplicate.ledger import Availability, absent_answers_needed
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.ledger_promises import Confirmed, Copy, Denied, Read, Tailed
from triplicate_simulator.workloads.ledger.ledger_model import (
    PASSWORD,
    KnownLedger,
    LedgerModel,
    client_of_wire,
    holders,
    pause,
    reading_client,
)

Result = TypeVar("Result")

HASTY_SHARE = 0.5
"""Share of reads that wait for an acknowledgement and follow it immediately."""
LOOKS, LOOK_S = 100, 0.003
COPIES_READ_SHARE = 0.05
"""Share of the listed copies that the final reader reads, besides the first of each segment and the last."""


class LedgerTailer:
    """Follows the ledgers of one writer, one after the other, each to its end. Never fences."""

    def __init__(self, shelf: LedgerModel, name: str, writer: str) -> None:
        self._shelf = shelf
        self._stage = shelf.stage
        self._name = name
        self._writer = writer
        self._done = 0
        self._next = 0

    async def __call__(self, client: Client) -> None:
        async with reading_client(client, self._shelf.load) as reader:
            await self._follow_all(reader)

    async def _follow_all(self, client: Client) -> None:
        while True:
            books = self._shelf.of_writer.get(self._writer, [])
            if self._done >= len(books):
                if self._writer not in self._shelf.writing:
                    return
                await asyncio.sleep(0.2)
                continue
            try:
                await self._follow(client, books[self._done].ledger_id)
            except NoSuchLedger:
                assert books[self._done].deleted, f"{self._name} was told that ledger {books[self._done].ledger_id} is not there"
            except (BookieError, MetadataError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                await asyncio.sleep(0.2)
                continue
            self._done += 1
            self._next = 0

    async def _follow(self, client: Client, ledger_id: int) -> None:
        reader = await client.open(ledger_id, password=PASSWORD)
        async with reader, reader.tail(self._next) as tail:
            async for entry in tail:
                assert entry.entry_id == self._next, f"{self._name} was given entry {entry.entry_id} for {self._next}"
                self._next += 1
                self._stage.history.add(Tailed(self._stage.time(), self._name, ledger_id, entry.entry_id, entry.payload))
            await self._shelf.note_end_of(reader, self._name)


class LedgerProber:
    """Reads a few times from one ledger, then continues with another."""

    def __init__(self, shelf: LedgerModel, name: str) -> None:
        self._shelf = shelf
        self._stage = shelf.stage
        self._name = name
        self._chance = self._stage.chance(name)
        self._handles = 0
        self._questions: list[Callable[[LedgerReader, KnownLedger], Awaitable[None]]] = [
            self._read_confirmed,
            self._read_confirmed,
            self._read_copies,
            self._read_copies,
            self._read_unconfirmed,
            self._read_batch,
            self._ask_confirmed,
            self._wait_for_entry,
        ]

    async def __call__(self, client: Client) -> None:
        async with reading_client(client, self._shelf.load) as reader:
            while True:
                await pause(self._stage, self._chance.expovariate(1.0 / self._shelf.load.probe_pause_s))
                if self._stage.quiet.is_set():
                    return
                books = self._shelf.books
                if books:
                    # Mostly ledgers that are being written.
                    recent = min(len(books), len(self._shelf.load.writers) + 1)
                    book = self._chance.choice(books[-recent:] if self._chance.random() < 0.8 else books)
                    is_hasty = self._chance.random() < HASTY_SHARE and await self._see_acknowledged(book)
                    await self._probe(reader, book, is_hasty)

    async def _see_acknowledged(self, book: KnownLedger) -> bool:
        """Wait briefly for an acknowledgement, so that the next read follows it at once."""
        before = book.acknowledged_to
        for _ in range(LOOKS):
            if book.acknowledged_to > before or self._stage.quiet.is_set():
                break
            await asyncio.sleep(LOOK_S)
        return book.acknowledged_to > before

    async def _probe(self, client: Client, book: KnownLedger, is_hasty: bool) -> None:
        self._handles += 1
        handle = f"{self._name}#{self._handles}"
        try:
            async with await client.open(book.ledger_id, password=PASSWORD) as reader:
                if is_hasty:
                    await self._read_confirmed(reader, book)
                for _ in range(self._chance.randrange(1, 4)):
                    self._note_confirmed(handle, reader)
                    await self._chance.choice(self._questions)(reader, book)
                self._note_confirmed(handle, reader)
        except NoSuchLedger:
            assert book.deleted, f"{self._name} was told that ledger {book.ledger_id} is not there"
        except (BookieError, MetadataError, EnvironmentFault) as error:
            self._stage.note_unknown(error)

    def _note_confirmed(self, handle: str, reader: LedgerReader) -> None:
        self._stage.history.add(Confirmed(self._stage.time(), handle, reader.ledger_id, reader.last_add_confirmed, not reader.is_closed))

    async def _read_confirmed(self, reader: LedgerReader, book: KnownLedger) -> None:
        """Read an entry that acknowledged entries carry as confirmed: every reader must find it if entries were sent in order."""
        if book.confirmed_told < 0:
            return
        entry_id = max(0, book.confirmed_told - self._chance.choice([0, 0, 0, self._chance.randrange(50)]))
        started_s = self._stage.time()
        try:
            entries = await reader.read(entry_id, entry_id)
        except NoSuchEntry:
            if book.is_plain:
                self._note(started_s, book, entry_id, None)
        else:
            self._note(started_s, book, entry_id, entries[0].payload)

    async def _read_copies(self, reader: LedgerReader, book: KnownLedger) -> None:
        """Read an acknowledged entry from its bookies one by one. It is lost if too many of them do not have it for an ack quorum."""
        if book.acknowledged_to < 0:
            return
        entry_id = max(0, book.acknowledged_to - self._chance.choice([0, 0, self._chance.randrange(50)]))
        started_s = self._stage.time()
        # The result depends on single bookies, so they must be the right ones.
        await reader.refresh_metadata(synced=True)
        absent = 0
        for bookie_id in holders(reader.metadata, entry_id):
            try:
                entry = await reader.read_from(bookie_id, entry_id)
            except (BookieError, EnvironmentFault) as error:
                self._stage.note_unknown(error)
                continue
            if entry is not None:
                self._note(started_s, book, entry_id, entry.payload)
                continue
            self._stage.history.add(Denied(started_s, bookie_id, book.ledger_id, entry_id))
            absent += 1
            if absent >= absent_answers_needed(reader.metadata.write_quorum, reader.metadata.ack_quorum):
                self._note(started_s, book, entry_id, None)

    async def _read_unconfirmed(self, reader: LedgerReader, book: KnownLedger) -> None:
        """Read an entry near the end. An entry in flight may be there or not; an acknowledged one must be."""
        entry_id = max(0, book.acknowledged_to + self._chance.choice([-3, 0, 0, 1, 2]))
        was_acknowledged = entry_id <= book.acknowledged_to
        started_s = self._stage.time()
        await reader.refresh_metadata()
        try:
            entries = await reader.read_unconfirmed(entry_id, entry_id)
        except NoSuchEntry:
            self._note(started_s, book, entry_id, None, confirmed=was_acknowledged)
        else:
            self._note(started_s, book, entry_id, entries[0].payload, confirmed=was_acknowledged)

    async def _read_batch(self, reader: LedgerReader, book: KnownLedger) -> None:
        if book.confirmed_told < 0:
            return
        first = self._chance.randrange(book.confirmed_told + 1)
        started_s = self._stage.time()
        try:
            entries = await reader.read_batch(first, self._chance.randrange(1, 20), self._chance.choice([0, 0, 4000]))
        except NoSuchEntry:
            if book.is_plain:
                self._note(started_s, book, first, None)
            return
        assert [entry.entry_id for entry in entries] == list(range(first, first + len(entries))), "a batch has a gap"
        for entry in entries:
            self._note(started_s, book, entry.entry_id, entry.payload)

    async def _ask_confirmed(self, reader: LedgerReader, book: KnownLedger) -> None:
        """Ask for the last-add-confirmed, and read that entry."""
        question = self._chance.randrange(3)
        if question == 0:
            told = await reader.read_last_confirmed()
        elif question == 1:
            told = await reader.try_last_confirmed()
        else:
            explicit = await reader.read_explicit_last_confirmed()
            told = -1 if explicit is None else explicit
        if told >= 0:
            started_s = self._stage.time()
            self._note(started_s, book, told, (await reader.read(told, told))[0].payload)

    async def _wait_for_entry(self, reader: LedgerReader, book: KnownLedger) -> None:
        entry_id = max(0, book.acknowledged_to + self._chance.choice([0, 1, 1, 2]))
        started_s = self._stage.time()
        entry = await reader.wait_for_entry(entry_id, self._chance.choice([0.05, 0.5, 1.5]))
        if entry is not None:
            self._note(started_s, book, entry_id, entry.payload)

    def _note(self, started_s: float, book: KnownLedger, entry_id: int, payload: bytes | None, *, confirmed: bool = True) -> None:
        self._stage.history.add(Read(started_s, self._stage.time(), self._name, book.ledger_id, entry_id, payload, confirmed))


class FinalLedgerReader:
    """Reads at the end every entry of every ledger, then every bookie's own copies."""

    NAME = "final"
    AT_A_TIME = 8

    def __init__(self, shelf: LedgerModel) -> None:
        self._shelf = shelf
        self._stage = shelf.stage
        self._chance = self._stage.chance(self.NAME)

    async def __call__(self, client: Client) -> None:
        self._stage.history.final_reader = self.NAME
        # Only version 2 has batches.
        async with client_of_wire(client, "v2") as batching, TaskScope(self.NAME) as scope:
            queue = [ledger_id async for ledger_id in client.ledger_ids() if ledger_id not in self._shelf.late]
            queue.reverse()
            for number in range(self.AT_A_TIME):
                scope.spawn(self._work(client, batching, queue), name=f"final reading {number}")

    async def _work(self, client: Client, batching: Client, queue: list[int]) -> None:
        while queue:
            await self._read_ledger(client, batching, queue.pop())

    async def _read_ledger(self, client: Client, batching: Client, ledger_id: int) -> None:
        stage, history = self._stage, self._stage.history
        # A ledger whose writer died before it learned of its creation is closed by no other actor.
        async with await self._patiently(lambda: client.recover(ledger_id, password=PASSWORD)) as reader:
            self._shelf.note_end(ledger_id, self.NAME, reader.last_add_confirmed, reader.length)
            last = reader.last_add_confirmed
            if last < 0:
                return
            started_s = stage.time()
            try:
                entries = await reader.read(0, last)
            except (ReadFailed, NoSuchEntry) as error:
                stage.note_unknown(error)
                await self._read_one_by_one(reader, last)
            else:
                for entry in entries:
                    history.add(Read(started_s, stage.time(), self.NAME, ledger_id, entry.entry_id, entry.payload))
            await self._read_damaged(batching, reader, last)
            history.ack_quorums[ledger_id] = reader.metadata.ack_quorum
            await self._read_copies(reader, last)

    async def _read_one_by_one(self, reader: LedgerReader, last: int) -> None:
        """Find the entries that cannot be read although every bookie runs."""
        for entry_id in range(last + 1):
            started_s, payload = self._stage.time(), None
            for _ in range(5):
                try:
                    payload = (await reader.read(entry_id, entry_id))[0].payload
                    break
                except (ReadFailed, NoSuchEntry) as error:
                    self._stage.note_unknown(error)
                    await asyncio.sleep(1.0)
            self._stage.history.add(Read(started_s, self._stage.time(), self.NAME, reader.ledger_id, entry_id, payload))

    async def _read_damaged(self, batching: Client, closed: LedgerReader, last: int) -> None:
        """Read each segment once more, so that a bookie with a rotten disk is asked for batches of it: the first reading asked it perhaps
        for few or none. A batch is requested from the first bookie of its first entry, and its continuation from the same one."""
        stage, metadata = self._stage, closed.metadata
        asked = [name for name in stage.destroyed_bookies if name not in stage.lost_bookies]
        if not asked or metadata.ensemble_size > metadata.write_quorum:
            return
        stretches: list[tuple[int, int]] = []
        ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]] + [last]
        for segment, end in zip(metadata.segments, ends, strict=True):
            firsts = range(segment.first_entry_id, min(end, segment.first_entry_id + metadata.ensemble_size))
            stretches += [(first, end) for first in firsts if holders(metadata, first)[0] in asked]
        if not stretches:
            return
        async with await self._patiently(lambda: batching.open(closed.ledger_id, password=PASSWORD)) as reader:
            for first, end in stretches:
                started_s = stage.time()
                try:
                    entries = await reader.read(first, end)
                except (ReadFailed, NoSuchEntry) as error:
                    # The first reading has reported missing entries.
                    stage.note_unknown(error)
                    continue
                self._shelf.count("read_damaged", len(entries))
                for entry in entries:
                    stage.history.add(Read(started_s, stage.time(), self.NAME, reader.ledger_id, entry.entry_id, entry.payload))

    async def _read_copies(self, reader: LedgerReader, last: int) -> None:
        """Read each bookie's list of entries and, of a sample, the entries themselves."""
        lists: dict[str, Availability] = {}
        for segment in reader.metadata.segments:
            for bookie_id in segment.ensemble:
                if bookie_id not in lists:
                    lists[bookie_id] = await self._ask_list(reader, bookie_id)
        starts = {segment.first_entry_id for segment in reader.metadata.segments}
        doubtful = [name for name in lists if self._is_doubtful(name, reader.ledger_id)]
        for entry_id in range(last + 1):
            is_read = entry_id in starts or entry_id == last or self._chance.random() < COPIES_READ_SHARE
            for bookie_id in holders(reader.metadata, entry_id):
                is_held = entry_id in lists[bookie_id]
                # A replaced bookie does not list entries that it may have held, and must answer accordingly.
                if (is_held or bookie_id in doubtful) and is_read:
                    await self._read_copy(reader, bookie_id, entry_id)
                else:
                    self._stage.history.add(Copy(bookie_id, reader.ledger_id, entry_id, None, is_held))

    async def _ask_list(self, reader: LedgerReader, bookie_id: str) -> Availability:
        """The entries that a bookie lists; none if it cannot answer, which only one with a rotten disk may do."""
        if bookie_id in self._stage.lost_bookies:
            return Availability(())
        try:
            asked_s = self._stage.time()
            found = await self._patiently(lambda: reader.entries_on(bookie_id), bookie_id)
        except BookieError as error:
            self._note_damage(bookie_id, reader.ledger_id, error)
            return Availability(())
        if self._is_doubtful(bookie_id, reader.ledger_id):
            denied = [entry_id for entry_id in range(reader.last_add_confirmed + 1) if entry_id not in found]
            for entry_id in denied[:1]:
                self._stage.history.add(Denied(asked_s, bookie_id, reader.ledger_id, entry_id))
        return found

    async def _read_copy(self, reader: LedgerReader, bookie_id: str, entry_id: int) -> None:
        payload, asked_s = None, self._stage.time()
        try:
            entry = await self._patiently(lambda: reader.read_from(bookie_id, entry_id), bookie_id)
            payload = None if entry is None else entry.payload
            if entry is None:
                self._stage.history.add(Denied(asked_s, bookie_id, reader.ledger_id, entry_id))
        except (BookieError, DigestMismatch) as error:
            self._note_damage(bookie_id, reader.ledger_id, error)
        self._stage.history.add(Copy(bookie_id, reader.ledger_id, entry_id, payload))

    def _is_doubtful(self, bookie_id: str, ledger_id: int) -> bool:
        """Whether the bookie was replaced and may have held entries of this ledger before."""
        node = self._stage.cluster.bookies[bookie_id]
        return bool(node.wiped) and (ledger_id < node.id_bound or self._shelf.born_s.get(ledger_id, 0.0) <= node.whole_s)

    def _note_damage(self, bookie_id: str, ledger_id: int, error: Exception) -> None:
        self._stage.note_unknown(error)
        if self._is_doubtful(bookie_id, ledger_id):
            self._shelf.count("doubtful_copies")
            return
        self._shelf.count("damaged_copies")
        if bookie_id not in self._stage.rotten_bookies:
            self._stage.problems.append(f"{bookie_id}, whose disk is sound, holds a damaged copy: {error}")

    async def _patiently(self, question: Callable[[], Awaitable[Result]], bookie_id: str = "") -> Result:
        """Repeat a request until it is answered: a bookie whose session was lost may have to register again."""
        while True:
            try:
                return await question()
            except (BookieUnavailable, RequestTimeout, TooManyRequests, MetadataError, EnvironmentFault) as error:
                if isinstance(error, DigestMismatch) or bookie_id in self._stage.lost_bookies:
                    raise
                self._stage.note_unknown(error)
                await asyncio.sleep(0.5)
