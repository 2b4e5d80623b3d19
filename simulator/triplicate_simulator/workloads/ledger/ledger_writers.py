"""Writers of a play of ledgers: each writes one ledger after the other, in its own way, until the faults are over.

A writer goes on to a new ledger when it has written enough, when it was fenced, when its ledger cannot go on, and in each new life. In
the quiet it must get an append acknowledged and a ledger closed once more.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from triplicate.client import AdvLedgerWriter, Client, LedgerWriter, WriteHandle
from triplicate.errors import (
    ArgumentError,
    BookieError,
    HandleClosed,
    LedgerClosed,
    LedgerError,
    LedgerFenced,
    MetadataError,
    NotEnoughBookies,
    WindowFull,
)
from triplicate.runtime import fault_point
from triplicate.sim.loop import context_of
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD, KnownLedger, LedgerModel, pause

LEAST_PER_S = 8.0
"""Entries that all writers together are to get acknowledged each second, at least: 300 and more in a run."""
FORCE_SHARE, FORCE_AT_ONCE_SHARE = 0.15, 0.3
"""After these shares of its bursts a writer with deferred sync forces; in the latter what was accepted this very moment."""
LEAST_IN_ALL = 300
PROOF_ENTRIES = 3
"""What a writer writes in the quiet."""


@dataclass
class _Dormant:
    """A ledger whose writer does something else for a while."""

    pen: LedgerAppender
    wakes_s: float


class LedgerAppender:
    """One ledger in the hand of its writer: appends of all kinds, and what becomes of them."""

    def __init__(self, shelf: LedgerModel, book: KnownLedger, chance_of: str) -> None:
        self.book = book
        self.shelf = shelf
        self.appended = 0
        self._chance = shelf.stage.chance(chance_of, book.writer_name, len(shelf.of_writer[book.writer_name]))
        self._carried: dict[int, int] = {}
        """What each entry says is confirmed, as far as is known, until it is acknowledged."""
        self._unforced: list[int] = []
        """Acknowledged, and not durable as far as the writer knows."""
        self._shuffled: list[tuple[int, bytes]] = []
        """Entries under ids of the writer's own that found no room yet."""
        self._next = 0

    async def burst(self) -> None:
        """Append a few entries.

        Raises:
            LedgerError, HandleClosed: the ledger takes no more.
        """
        book, chance = self.book, self._chance
        if isinstance(book.writer, AdvLedgerWriter):
            self._append_shuffled(book.writer)
        else:
            writer = cast("LedgerWriter", book.writer)
            for _ in range(chance.randrange(1, self.shelf.load.burst + 1)):
                if not self._append(writer):
                    break
            if chance.random() < 0.1:
                await self._append_and_wait(writer)
        if book.writer.deferred_sync:
            draw = chance.random()
            if draw < FORCE_AT_ONCE_SHARE:
                await self._accept_and_force()
            elif draw < FORCE_AT_ONCE_SHARE + FORCE_SHARE:
                await self.force()

    async def proof(self) -> None:
        """Append and wait until it is safe; raises what `burst` does, and BookieError from force."""
        writer = self.book.writer
        first = self.book.acknowledged_to
        written = 0
        # Where faults have kept everybody from writing, what the run is to have at least is written now; deferred entries count later.
        while written < PROOF_ENTRIES or (not writer.deferred_sync and self.shelf.acknowledged_count < LEAST_IN_ALL):
            written += 1
            if isinstance(writer, AdvLedgerWriter):
                entry_id, self._next = self._next, self._next + 1
                payload = self._note(entry_id)
                await self._settle(writer.append(entry_id, payload), range(entry_id, entry_id + 1))
            else:
                await self._append_and_wait(cast("LedgerWriter", writer), 1)
        if writer.deferred_sync:
            await self._force()
        assert self.book.acknowledged_to > first, "appends returned and nothing is acknowledged"

    async def force(self) -> None:
        """Make durable what was acknowledged; failing that, it remains to be done.

        Raises:
            LedgerError, HandleClosed: as for an append.
        """
        try:
            await self._force()
        except BookieError as error:
            self.shelf.stage.note_unknown(error)

    async def _force(self) -> None:
        forced = await self.book.writer.force()
        self.shelf.count("forced")
        self._note_forced(forced)

    @fault_point("play.forced")
    def _note_forced(self, forced: int) -> None:
        """All entries up to this one are safe now. Whatever happens right before this, the answer was on its way already."""
        durable = [entry_id for entry_id in self._unforced if entry_id <= forced]
        self._unforced = [entry_id for entry_id in self._unforced if entry_id > forced]
        for entry_id in sorted(durable):
            self.shelf.acknowledged(self.book, entry_id, self._carried.pop(entry_id))

    async def _accept_and_force(self) -> None:
        """Force what bookies have accepted just now and need not have synced: what was accepted long ago a force finds synced.

        Raises:
            LedgerError, HandleClosed: as for an append.
        """
        self._defer()
        writer, chance = self.book.writer, self._chance
        if isinstance(writer, AdvLedgerWriter):
            # Without gaps, or nothing behind the first is accepted.
            rest, self._shuffled = sorted(self._shuffled), []
            for entry_id, payload in [*rest, (self._next, self._payload(self._next))]:
                self._next = max(self._next, entry_id + 1)
                self._note(entry_id, payload=payload)
                await self._settle(writer.append(entry_id, payload), range(entry_id, entry_id + 1))
        else:
            await self._append_and_wait(cast("LedgerWriter", writer))
        await self._meet_force(chance.uniform(0.1, 1.0) if chance.random() < 0.5 else 0.0)
        await self.force()

    @fault_point("play.deferring")
    def _defer(self) -> None:
        """It is about to send what it will force."""

    @fault_point("play.accepted")
    async def _meet_force(self, pause_s: float) -> None:
        """What it sent last was accepted. What becomes of bookies during the pause, the force must find out."""
        if pause_s:
            await pause(self.shelf.stage, pause_s)

    async def close(self) -> None:
        """Close the ledger in order; if that is refused, or its outcome unknown, it is left."""
        writer, shelf = self.book.writer, self.shelf
        try:
            if writer.deferred_sync and writer.failure is None and self._chance.random() < 0.8:
                await self.force()
            last = await writer.close(wait=self._chance.random() < 0.8)
        except (LedgerError, BookieError, HandleClosed, MetadataError) as error:
            shelf.stage.note_unknown(error)
        else:
            # Entries carry lengths in the order of appending, so where that is not their order, a recovery that was faster may differ.
            shelf.note_end(writer.ledger_id, self.book.writer_name, last, writer.length if self.book.is_plain else None)
            shelf.count("closed")
        self.leave()

    def leave(self) -> None:
        """Write no more."""
        self.book.writer.abandon()
        self.book.left = True
        self.shelf.bury(self.book)

    def _append(self, writer: LedgerWriter) -> bool:
        """Append one or a few entries without waiting; false when there is no room for them."""
        return self.send(writer, self._chance.randrange(2, 6) if self._chance.random() < 0.15 else 1)

    def send(self, writer: LedgerWriter, count: int) -> bool:
        """Append so many entries at once without waiting; false when there is no room for them.

        Raises:
            LedgerError, HandleClosed: the ledger takes no more.
        """
        first = writer.last_add_pushed + 1
        payloads = [self._payload(first + index) for index in range(count)]
        carried = writer.last_add_confirmed
        future: asyncio.Future[int] | asyncio.Future[range]
        try:
            future = writer.append_nowait(payloads[0]) if count == 1 else writer.append_many_nowait(payloads)
        except (WindowFull, ArgumentError):
            self.shelf.count("window_full")
            return False
        for index, payload in enumerate(payloads):
            self.shelf.sent(self.book, first + index, payload, first + count - 1)
            self._carried[first + index] = carried
        self.appended += count
        future.add_done_callback(lambda done: self._settled(range(first, first + count), done))
        return True

    async def _append_and_wait(self, writer: LedgerWriter, count: int = 0) -> None:
        """Append one or many and wait; many may be more than the window holds. Nobody else queues, so the ids are known before."""
        count = count or (1 if self._chance.random() < 0.5 else self._chance.randrange(2, 12))
        first = writer.last_add_pushed + 1
        payloads = [self._note(first + index, first + count - 1) for index in range(count)]
        appending = writer.append(payloads[0]) if count == 1 else writer.append_many(payloads)
        await self._settle(appending, range(first, first + count))

    async def _settle(self, appending: object, entry_ids: range) -> None:
        self.appended += len(entry_ids)
        self._confirm(entry_ids, await appending)  # type: ignore[misc]

    def _append_shuffled(self, writer: AdvLedgerWriter) -> None:
        """Append under ids in any order; what finds no room is tried again before anything else."""
        load, chance = self.shelf.load, self._chance
        if len(self._shuffled) < load.burst:
            ids = list(range(self._next, self._next + chance.randrange(1, 2 * load.burst)))
            self._next = ids[-1] + 1
            chance.shuffle(ids)
            self._shuffled += [(entry_id, self._payload(entry_id)) for entry_id in ids]
        left: list[tuple[int, bytes]] = []
        for index, (entry_id, payload) in enumerate(self._shuffled):
            # Sometimes a gap stays open for a while.
            if index and chance.random() < 0.1:
                left.append((entry_id, payload))
                continue
            carried = writer.last_add_confirmed
            try:
                future = writer.append_nowait(entry_id, payload)
            except WindowFull:
                self.shelf.count("window_full")
                left.append((entry_id, payload))
                continue
            self.shelf.sent(self.book, entry_id, payload)
            self._carried[entry_id] = carried
            self.appended += 1
            future.add_done_callback(self._settled_one(entry_id))
        self._shuffled = left

    def _settled_one(self, entry_id: int) -> Callable[[asyncio.Future[int]], None]:
        return lambda done: self._settled(range(entry_id, entry_id + 1), done)

    def _note(self, entry_id: int, last_of_append: int = -1, payload: bytes | None = None) -> bytes:
        """A payload that is about to be sent; a new one where none is given."""
        payload = self._payload(entry_id) if payload is None else payload
        self.shelf.sent(self.book, entry_id, payload, last_of_append)
        self._carried[entry_id] = self.book.writer.last_add_confirmed
        return payload

    def _settled(self, entry_ids: range, done: asyncio.Future[int] | asyncio.Future[range]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self.shelf.stage.note_unknown(error)
        elif not done.cancelled():
            self._confirm(entry_ids, done.result())

    def _confirm(self, entry_ids: range, result: object) -> None:
        expected = entry_ids if isinstance(result, range) else entry_ids[0]
        assert result == expected, f"appended as {entry_ids}, acknowledged as {result}"
        for entry_id in entry_ids:
            if self.book.writer.deferred_sync:
                self._unforced.append(entry_id)
                self.shelf.count("accepted")
            else:
                self.shelf.acknowledged(self.book, entry_id, self._carried.pop(entry_id))

    def _payload(self, entry_id: int) -> bytes:
        head = f"{self.book.ledger_id} {entry_id} ".encode()
        return head + b"." * self._chance.randrange(self.shelf.load.payload_high_bytes)


class LedgerWriterActor:
    """See the module's text; the memory of one name over all its lives."""

    def __init__(self, shelf: LedgerModel, name: str, kind: str) -> None:
        self._shelf = shelf
        self._stage = shelf.stage
        self._name = name
        self._kind = kind
        self._chance = self._stage.chance(name)
        self._dormant: list[_Dormant] = []
        shelf.writing[name] = None

    async def __call__(self, client: Client) -> None:
        shelf, quiet = self._shelf, self._stage.quiet
        self._dormant = []
        for book in shelf.of_writer.get(self._name, []):
            book.left = True
            shelf.bury(book)
        while True:
            is_proof = quiet.is_set()
            if not is_proof and len(shelf.of_writer.get(self._name, [])) >= shelf.load.ledgers:
                await quiet.wait()
                continue
            pen = await self._begin(client)
            if pen is None:
                await pause(self._stage, 0.3)
            elif is_proof:
                if await self._prove(pen):
                    break
            else:
                await self._write(pen)
        await self._wake(all_of_them=True)
        shelf.writing.pop(self._name, None)

    async def _begin(self, client: Client) -> LedgerAppender | None:
        shelf = self._shelf
        ensemble_size, write_quorum, ack_quorum = self._sizes()
        create = client.create_adv if "adv" in self._kind else client.create
        try:
            writer: WriteHandle = await create(
                ensemble_size=ensemble_size,
                write_quorum=write_quorum,
                ack_quorum=ack_quorum,
                digest_type=shelf.digest,
                password=PASSWORD,
                deferred_sync="deferred" in self._kind,
            )
        except (NotEnoughBookies, MetadataError) as error:
            self._stage.note_unknown(error)
            return None
        host = self._stage.cluster.client(self._name).host
        assert host is not None
        book = KnownLedger(writer.ledger_id, self._name, self._kind, writer, host, self._stage.time())
        shelf.add(book)
        shelf.count("ledgers")
        return LedgerAppender(shelf, book, "pen")

    def _sizes(self) -> tuple[int, int, int]:
        """Sizes of a new ledger; it asks for no more bookies than will ever run again."""
        load, cluster = self._shelf.load, self._stage.cluster
        most = len(cluster.bookies) - len(self._stage.lost_bookies)
        return min(load.ensemble_size, most), min(load.write_quorum, most), min(load.ack_quorum, most)

    async def _write(self, pen: LedgerAppender) -> None:
        load, chance = self._shelf.load, self._chance
        wanted = chance.randrange(1, 2 * load.entries + 1)
        try:
            while pen.appended < wanted and not self._stage.quiet.is_set():
                await pen.burst()
                if not self._stage.quiet.is_set() and chance.random() < load.break_share:
                    self._break(pen.book)
                await pause(self._stage, chance.expovariate(1.0 / self._pause_mean_s()))
                await self._wake()
        except (LedgerError, HandleClosed) as error:
            self._stage.note_unknown(error)
            if isinstance(error, LedgerFenced | LedgerClosed):
                self._shelf.count("fenced")
            if chance.random() < 0.5:
                pen.leave()
                return
        await self._part(pen)

    def _pause_mean_s(self) -> float:
        """How long a writer pauses: less where faults have kept the run behind what it is to write at least."""
        is_late = self._shelf.acknowledged_count < LEAST_PER_S * self._stage.time()
        return self._shelf.load.pause_mean_s * (0.3 if is_late else 1.0)

    def _break(self, book: KnownLedger) -> None:
        """Break connections to bookies of the ensemble with what has just been sent on them, several at once in some cases, and in some
        cases have the ledger recovered while the ensemble changes."""
        chance, world = self._chance, self._stage.world
        ensemble = list(book.writer.metadata.last_segment.ensemble)
        for bookie_id in chance.sample(ensemble, min(len(ensemble), chance.choice([1, 1, 2, 3]))):
            # The world's hand, not the writer's.
            world.loop.call_later(chance.choice([0.0, 0.001, 0.01]), world.network.reset, self._name, bookie_id, context=context_of(None))
        self._shelf.count("breaks")
        if chance.random() < self._shelf.load.zombie_share:
            self._shelf.hurry(book)

    async def _part(self, pen: LedgerAppender) -> None:
        chance, load = self._chance, self._shelf.load
        if self._stage.quiet.is_set() or chance.random() < load.close_share:
            await pen.close()
        elif chance.random() < load.dormant_share:
            # For all others it has no writer any more, and is recovered.
            pen.book.left = True
            # Some sleep until all is over: whatever happened to a fence since, it must hold.
            sleeps_s = chance.uniform(0.5, 8.0) if chance.random() < 0.7 else math.inf
            self._dormant.append(_Dormant(pen, self._stage.time() + sleeps_s))
        else:
            pen.leave()

    async def _wake(self, *, all_of_them: bool = False) -> None:
        """Append once more to ledgers that lay idle."""
        now = self._stage.time()
        for dormant in [dormant for dormant in self._dormant if all_of_them or dormant.wakes_s <= now]:
            self._dormant.remove(dormant)
            self._shelf.count("woken")
            try:
                await dormant.pen.burst()
                if not all_of_them:
                    await pause(self._stage, 0.05)
            except (LedgerError, HandleClosed) as error:
                self._stage.note_unknown(error)
            if self._chance.random() < 0.5:
                await dormant.pen.close()
            else:
                dormant.pen.leave()

    async def _prove(self, pen: LedgerAppender) -> bool:
        """Whether an append was acknowledged and the ledger closed, now that no fault is in the way."""
        try:
            await pen.proof()
        except (LedgerError, BookieError, HandleClosed, MetadataError) as error:
            self._stage.note_unknown(error)
            pen.leave()
            await pause(self._stage, 0.2)
            return False
        await pen.close()
        if not pen.book.ended:
            await pause(self._stage, 0.2)
        return pen.book.ended
