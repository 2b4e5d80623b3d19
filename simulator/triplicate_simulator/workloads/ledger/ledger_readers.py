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

    def __init__(self, model: LedgerModel, name: str, writer: str) -> None:
        self._model = model
        self._context = model.context
        self._name = name
        self._writer = writer
        self._done = 0
        self._next = 0

    async def __call__(self, client: Client) -> None:
        async with reading_client(client, self._model.load) as reader:
            await self._follow_all(reader)

    async def _follow_all(self, client: Client) -> None:
        while True:
            ledgers = self._model.of_writer.get(self._writer, [])
            if self._done >= len(ledgers):
                if self._writer not in self._model.writing:
                    return
                await asyncio.sleep(0.2)
                continue
            try:
                await self._follow(client, ledgers[self._done].ledger_id)
            except NoSuchLedger:
                assert ledgers[self._done].deleted, f"{self._name} found no ledger {ledgers[self._done].ledger_id}"
            except (BookieError, MetadataError, EnvironmentFault) as error:
                self._context.count_unknown(error)
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
                self._context.history.add(Tailed(self._context.time(), self._name, ledger_id, entry.entry_id, entry.payload))
            await self._model.note_end_of(reader, self._name)


class LedgerProber:
    """Reads a few times from one ledger, then continues with another."""

    def __init__(self, model: LedgerModel, name: str) -> None:
        self._model = model
        self._context = model.context
        self._name = name
        self._rng = self._context.rng(name)
        self._handles = 0
        self._questions: list[Callable[[LedgerReader, KnownLedger], Awaitable[None]]] = [
            self._read_confirmed,
            self._read_confirmed,
            self._read_copies,
            self._read_copies,
            self._read_unconfirmed,
            self._read_batch,
            self._query_confirmed,
            self._wait_for_entry,
        ]

    async def __call__(self, client: Client) -> None:
        async with reading_client(client, self._model.load) as reader:
            while True:
                await pause(self._context, self._rng.expovariate(1.0 / self._model.load.probe_pause_s))
                if self._context.faults_over.is_set():
                    return
                ledgers = self._model.ledgers
                if ledgers:
                    # Mostly ledgers that are being written.
                    recent = min(len(ledgers), len(self._model.load.writers) + 1)
                    ledger = self._rng.choice(ledgers[-recent:] if self._rng.random() < 0.8 else ledgers)
                    is_hasty = self._rng.random() < HASTY_SHARE and await self._see_acknowledged(ledger)
                    await self._probe(reader, ledger, is_hasty)

    async def _see_acknowledged(self, ledger: KnownLedger) -> bool:
        """Wait briefly for an acknowledgement, so that the next read follows it at once."""
        before = ledger.acknowledged_to
        for _ in range(LOOKS):
            if ledger.acknowledged_to > before or self._context.faults_over.is_set():
                break
            await asyncio.sleep(LOOK_S)
        return ledger.acknowledged_to > before

    async def _probe(self, client: Client, ledger: KnownLedger, is_hasty: bool) -> None:
        self._handles += 1
        handle = f"{self._name}#{self._handles}"
        try:
            async with await client.open(ledger.ledger_id, password=PASSWORD) as reader:
                if is_hasty:
                    await self._read_confirmed(reader, ledger)
                for _ in range(self._rng.randrange(1, 4)):
                    self._note_confirmed(handle, reader)
                    await self._rng.choice(self._questions)(reader, ledger)
                self._note_confirmed(handle, reader)
        except NoSuchLedger:
            assert ledger.deleted, f"{self._name} found no ledger {ledger.ledger_id}"
        except (BookieError, MetadataError, EnvironmentFault) as error:
            self._context.count_unknown(error)

    def _note_confirmed(self, handle: str, reader: LedgerReader) -> None:
        self._context.history.add(
            Confirmed(self._context.time(), handle, reader.ledger_id, reader.last_add_confirmed, not reader.is_closed)
        )

    async def _read_confirmed(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        """Read an entry that acknowledged entries carry as confirmed: every reader must find it if entries were sent in order."""
        if ledger.confirmed_carried < 0:
            return
        entry_id = max(0, ledger.confirmed_carried - self._rng.choice([0, 0, 0, self._rng.randrange(50)]))
        started_s = self._context.time()
        try:
            entries = await reader.read(entry_id, entry_id)
        except NoSuchEntry:
            if ledger.is_plain:
                self._note_read(started_s, ledger, entry_id, None)
        else:
            self._note_read(started_s, ledger, entry_id, entries[0].payload)

    async def _read_copies(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        """Read an acknowledged entry from its bookies one by one. It is lost if too many of them do not have it for an ack quorum."""
        if ledger.acknowledged_to < 0:
            return
        entry_id = max(0, ledger.acknowledged_to - self._rng.choice([0, 0, self._rng.randrange(50)]))
        started_s = self._context.time()
        # The result depends on single bookies, so they must be the right ones.
        await reader.refresh_metadata(synced=True)
        absent = 0
        for bookie_id in holders(reader.metadata, entry_id):
            try:
                entry = await reader.read_from(bookie_id, entry_id)
            except (BookieError, EnvironmentFault) as error:
                self._context.count_unknown(error)
                continue
            if entry is not None:
                self._note_read(started_s, ledger, entry_id, entry.payload)
                continue
            self._context.history.add(Denied(started_s, bookie_id, ledger.ledger_id, entry_id))
            absent += 1
            if absent >= absent_answers_needed(reader.metadata.write_quorum, reader.metadata.ack_quorum):
                self._note_read(started_s, ledger, entry_id, None)

    async def _read_unconfirmed(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        """Read an entry near the end. An entry in flight may be there or not; an acknowledged one must be."""
        entry_id = max(0, ledger.acknowledged_to + self._rng.choice([-3, 0, 0, 1, 2]))
        was_acknowledged = entry_id <= ledger.acknowledged_to
        started_s = self._context.time()
        await reader.refresh_metadata()
        try:
            entries = await reader.read_unconfirmed(entry_id, entry_id)
        except NoSuchEntry:
            self._note_read(started_s, ledger, entry_id, None, confirmed=was_acknowledged)
        else:
            self._note_read(started_s, ledger, entry_id, entries[0].payload, confirmed=was_acknowledged)

    async def _read_batch(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        if ledger.confirmed_carried < 0:
            return
        first = self._rng.randrange(ledger.confirmed_carried + 1)
        started_s = self._context.time()
        try:
            entries = await reader.read_batch(first, self._rng.randrange(1, 20), self._rng.choice([0, 0, 4000]))
        except NoSuchEntry:
            if ledger.is_plain:
                self._note_read(started_s, ledger, first, None)
            return
        assert [entry.entry_id for entry in entries] == list(range(first, first + len(entries))), "a batch has a gap"
        for entry in entries:
            self._note_read(started_s, ledger, entry.entry_id, entry.payload)

    async def _query_confirmed(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        """Ask for the last-add-confirmed, and read that entry."""
        question = self._rng.randrange(3)
        if question == 0:
            last = await reader.read_last_confirmed()
        elif question == 1:
            last = await reader.try_last_confirmed()
        else:
            explicit = await reader.read_explicit_last_confirmed()
            last = -1 if explicit is None else explicit
        if last >= 0:
            started_s = self._context.time()
            self._note_read(started_s, ledger, last, (await reader.read(last, last))[0].payload)

    async def _wait_for_entry(self, reader: LedgerReader, ledger: KnownLedger) -> None:
        entry_id = max(0, ledger.acknowledged_to + self._rng.choice([0, 1, 1, 2]))
        started_s = self._context.time()
        entry = await reader.wait_for_entry(entry_id, self._rng.choice([0.05, 0.5, 1.5]))
        if entry is not None:
            self._note_read(started_s, ledger, entry_id, entry.payload)

    def _note_read(self, started_s: float, ledger: KnownLedger, entry_id: int, payload: bytes | None, *, confirmed: bool = True) -> None:
        self._context.history.add(Read(started_s, self._context.time(), self._name, ledger.ledger_id, entry_id, payload, confirmed))


class FinalLedgerReader:
    """Reads at the end every entry of every ledger, then every bookie's own copies."""

    NAME = "final"
    AT_A_TIME = 8

    def __init__(self, model: LedgerModel) -> None:
        self._model = model
        self._context = model.context
        self._rng = self._context.rng(self.NAME)

    async def __call__(self, client: Client) -> None:
        self._context.history.final_reader = self.NAME
        # Only version 2 has batches.
        async with client_of_wire(client, "v2") as batching, TaskScope(self.NAME) as scope:
            passed_over = self._model.restored_late
            queue = [one async for one in client.ledger_ids() if one not in passed_over and not self._model.is_of_log(one)]
            queue.reverse()
            for number in range(self.AT_A_TIME):
                scope.spawn(self._work(client, batching, queue), name=f"final reading {number}")

    async def _work(self, client: Client, batching: Client, queue: list[int]) -> None:
        while queue:
            await self._read_ledger(client, batching, queue.pop())

    async def _read_ledger(self, client: Client, batching: Client, ledger_id: int) -> None:
        context, history = self._context, self._context.history
        # A ledger whose writer died before it learned of its creation is closed by no other actor.
        async with await self._retry(lambda: client.recover(ledger_id, password=PASSWORD)) as reader:
            self._model.note_end(ledger_id, self.NAME, reader.last_add_confirmed, reader.length)
            last = reader.last_add_confirmed
            if last < 0:
                return
            started_s = context.time()
            try:
                entries = await reader.read(0, last)
            except (ReadFailed, NoSuchEntry) as error:
                context.count_unknown(error)
                await self._read_one_by_one(reader, last)
            else:
                for entry in entries:
                    history.add(Read(started_s, context.time(), self.NAME, ledger_id, entry.entry_id, entry.payload))
            await self._read_damaged(batching, reader, last)
            history.ack_quorums[ledger_id] = reader.metadata.ack_quorum
            await self._read_copies(reader, last)

    async def _read_one_by_one(self, reader: LedgerReader, last: int) -> None:
        """Find the entries that cannot be read although every bookie runs."""
        for entry_id in range(last + 1):
            started_s, payload = self._context.time(), None
            for _ in range(5):
                try:
                    payload = (await reader.read(entry_id, entry_id))[0].payload
                    break
                except (ReadFailed, NoSuchEntry) as error:
                    self._context.count_unknown(error)
                    await asyncio.sleep(1.0)
            self._context.history.add(Read(started_s, self._context.time(), self.NAME, reader.ledger_id, entry_id, payload))

    async def _read_damaged(self, batching: Client, closed: LedgerReader, last: int) -> None:
        """Read each segment once more, so that a bookie with a rotten disk is asked for batches of it: the first reading asked it perhaps
        for few or none. A batch is requested from the first bookie of its first entry, and its continuation from the same one."""
        context, metadata = self._context, closed.metadata
        asked = [name for name in context.destroyed_bookies if name not in context.lost_bookies]
        if not asked or metadata.ensemble_size > metadata.write_quorum:
            return
        stretches: list[tuple[int, int]] = []
        ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]] + [last]
        for segment, end in zip(metadata.segments, ends, strict=True):
            firsts = range(segment.first_entry_id, min(end, segment.first_entry_id + metadata.ensemble_size))
            stretches += [(first, end) for first in firsts if holders(metadata, first)[0] in asked]
        if not stretches:
            return
        async with await self._retry(lambda: batching.open(closed.ledger_id, password=PASSWORD)) as reader:
            for first, end in stretches:
                started_s = context.time()
                try:
                    entries = await reader.read(first, end)
                except (ReadFailed, NoSuchEntry) as error:
                    # The first reading has reported missing entries.
                    context.count_unknown(error)
                    continue
                self._model.count("read_damaged", len(entries))
                for entry in entries:
                    context.history.add(Read(started_s, context.time(), self.NAME, reader.ledger_id, entry.entry_id, entry.payload))

    async def _read_copies(self, reader: LedgerReader, last: int) -> None:
        """Read each bookie's list of entries and, of a sample, the entries themselves."""
        lists: dict[str, Availability] = {}
        for segment in reader.metadata.segments:
            for bookie_id in segment.ensemble:
                if bookie_id not in lists:
                    lists[bookie_id] = await self._list_entries(reader, bookie_id)
        starts = {segment.first_entry_id for segment in reader.metadata.segments}
        doubtful = [name for name in lists if self._may_have_lost(name, reader.ledger_id)]
        for entry_id in range(last + 1):
            is_read = entry_id in starts or entry_id == last or self._rng.random() < COPIES_READ_SHARE
            for bookie_id in holders(reader.metadata, entry_id):
                is_held = entry_id in lists[bookie_id]
                # A replaced bookie does not list entries that it may have held, and must answer accordingly.
                if (is_held or bookie_id in doubtful) and is_read:
                    await self._read_copy(reader, bookie_id, entry_id)
                else:
                    self._context.history.add(Copy(bookie_id, reader.ledger_id, entry_id, None, is_held))

    async def _list_entries(self, reader: LedgerReader, bookie_id: str) -> Availability:
        """The entries that a bookie lists; none if it cannot answer, which only one with a rotten disk may do."""
        if bookie_id in self._context.lost_bookies:
            return Availability(())
        try:
            asked_s = self._context.time()
            found = await self._retry(lambda: reader.entries_on(bookie_id), bookie_id)
        except BookieError as error:
            self._note_damage(bookie_id, reader.ledger_id, error)
            return Availability(())
        if self._may_have_lost(bookie_id, reader.ledger_id):
            denied = [entry_id for entry_id in range(reader.last_add_confirmed + 1) if entry_id not in found]
            for entry_id in denied[:1]:
                self._context.history.add(Denied(asked_s, bookie_id, reader.ledger_id, entry_id))
        return found

    async def _read_copy(self, reader: LedgerReader, bookie_id: str, entry_id: int) -> None:
        payload, asked_s = None, self._context.time()
        try:
            entry = await self._retry(lambda: reader.read_from(bookie_id, entry_id), bookie_id)
            payload = None if entry is None else entry.payload
            if entry is None:
                self._context.history.add(Denied(asked_s, bookie_id, reader.ledger_id, entry_id))
        except (BookieError, DigestMismatch) as error:
            self._note_damage(bookie_id, reader.ledger_id, error)
        self._context.history.add(Copy(bookie_id, reader.ledger_id, entry_id, payload))

    def _may_have_lost(self, bookie_id: str, ledger_id: int) -> bool:
        """Whether the bookie was replaced and may have held entries of this ledger before."""
        node = self._context.cluster.bookies[bookie_id]
        return bool(node.wiped) and (ledger_id < node.id_bound or self._model.created_s.get(ledger_id, 0.0) <= node.intact_from_s)

    def _note_damage(self, bookie_id: str, ledger_id: int, error: Exception) -> None:
        self._context.count_unknown(error)
        if self._may_have_lost(bookie_id, ledger_id):
            self._model.count("doubtful_copies")
            return
        self._model.count("damaged_copies")
        if bookie_id not in self._context.rotten_bookies:
            self._context.problems.append(f"{bookie_id}, whose disk is sound, holds a damaged copy: {error}")

    async def _retry(self, question: Callable[[], Awaitable[Result]], bookie_id: str = "") -> Result:
        """Repeat a request until it is answered: a bookie whose session was lost may have to register again."""
        while True:
            try:
                return await question()
            except (BookieUnavailable, RequestTimeout, TooManyRequests, MetadataError, EnvironmentFault) as error:
                if isinstance(error, DigestMismatch) or bookie_id in self._context.lost_bookies:
                    raise
                self._context.count_unknown(error)
                await asyncio.sleep(0.5)
