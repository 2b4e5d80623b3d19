"""Writers of the ledger workload: each writes one ledger after the other, in its own way, until the faults are over.

A writer starts a new ledger when it has written enough, when it was fenced, when its ledger failed, and in each new life. Once faults are
over it must get an append acknowledged and a ledger closed once more.
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
from triplicate.sim.virtual_loop import context_of
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD, KnownLedger, LedgerModel, pause

LEAST_PER_S = 8.0
"""Acknowledged entries per second of all writers together, at least: 300 and more in a run."""
FORCE_SHARE, FORCE_AT_ONCE_SHARE = 0.15, 0.3
"""Shares of bursts after which a writer with deferred sync forces. In the latter it forces entries accepted at this moment."""
LEAST_IN_ALL = 300
PROOF_ENTRIES = 3
"""Entries that a writer writes once faults are over."""


@dataclass
class _PausedLedger:
    """A ledger whose writer is busy elsewhere for a while."""

    appender: LedgerAppends
    wakes_s: float


class LedgerAppends:
    """Appends of all kinds to one ledger, and their outcomes."""

    def __init__(self, model: LedgerModel, ledger: KnownLedger, rng_purpose: str) -> None:
        self.ledger = ledger
        self.model = model
        self.appended = 0
        self._rng = model.context.rng(rng_purpose, ledger.writer_name, len(model.of_writer[ledger.writer_name]))
        self._carried: dict[int, int] = {}
        """Last-add-confirmed that each unacknowledged entry carries, as far as is known."""
        self._unforced: list[int] = []
        """Entries acknowledged and, as far as the writer knows, not durable."""
        self._shuffled: list[tuple[int, bytes]] = []
        """Entries with ids of the writer's own that did not fit into the window yet."""
        self._next = 0

    async def burst(self) -> None:
        """Append a few entries.

        Raises:
            LedgerError, HandleClosed: the ledger accepts no more.
        """
        ledger, rng = self.ledger, self._rng
        if isinstance(ledger.writer, AdvLedgerWriter):
            self._append_shuffled(ledger.writer)
        else:
            writer = cast("LedgerWriter", ledger.writer)
            for _ in range(rng.randrange(1, self.model.load.burst + 1)):
                if not self._append(writer):
                    break
            if rng.random() < 0.1:
                await self._append_and_wait(writer)
        if ledger.writer.deferred_sync:
            draw = rng.random()
            if draw < FORCE_AT_ONCE_SHARE:
                await self._accept_and_force()
            elif draw < FORCE_AT_ONCE_SHARE + FORCE_SHARE:
                await self.force()

    async def prove(self) -> None:
        """Append and wait for the acknowledgement. Raises the errors of `burst`, and BookieError from force."""
        writer = self.ledger.writer
        first = self.ledger.acknowledged_to
        written = 0
        # If faults have kept the writers from writing, the minimum of the run is written now. Deferred entries count later.
        while written < PROOF_ENTRIES or (not writer.deferred_sync and self.model.acknowledged_count < LEAST_IN_ALL):
            written += 1
            if isinstance(writer, AdvLedgerWriter):
                entry_id, self._next = self._next, self._next + 1
                payload = self._note_sent(entry_id)
                await self._await_append(writer.append(entry_id, payload), range(entry_id, entry_id + 1))
            else:
                await self._append_and_wait(cast("LedgerWriter", writer), 1)
        if writer.deferred_sync:
            await self._force()
        assert self.ledger.acknowledged_to > first, "appends returned and nothing is acknowledged"

    async def force(self) -> None:
        """Make acknowledged entries durable. After a failure they remain to be forced.

        Raises:
            LedgerError, HandleClosed: as for an append.
        """
        try:
            await self._force()
        except BookieError as error:
            self.model.context.count_unknown(error)

    async def _force(self) -> None:
        forced = await self.ledger.writer.force()
        self.model.count("forced")
        self._note_forced(forced)

    @fault_point("play.forced")
    def _note_forced(self, forced: int) -> None:
        """Record that all entries up to this one are durable. A crash right before this call comes after the answer was sent."""
        durable = [entry_id for entry_id in self._unforced if entry_id <= forced]
        self._unforced = [entry_id for entry_id in self._unforced if entry_id > forced]
        for entry_id in sorted(durable):
            self.model.note_acknowledged(self.ledger, entry_id, self._carried.pop(entry_id))

    async def _accept_and_force(self) -> None:
        """Force entries that bookies have just accepted and need not have synced: older entries are synced before any force.

        Raises:
            LedgerError, HandleClosed: as for an append.
        """
        self._defer()
        writer, rng = self.ledger.writer, self._rng
        if isinstance(writer, AdvLedgerWriter):
            # Without gaps, since entries behind a gap are not accepted.
            rest, self._shuffled = sorted(self._shuffled), []
            for entry_id, payload in [*rest, (self._next, self._payload(self._next))]:
                self._next = max(self._next, entry_id + 1)
                self._note_sent(entry_id, payload=payload)
                await self._await_append(writer.append(entry_id, payload), range(entry_id, entry_id + 1))
        else:
            await self._append_and_wait(cast("LedgerWriter", writer))
        await self._meet_force(rng.uniform(0.1, 1.0) if rng.random() < 0.5 else 0.0)
        await self.force()

    @fault_point("play.deferring")
    def _defer(self) -> None:
        """Fault point: it is about to send entries that it will force."""

    @fault_point("play.accepted")
    async def _meet_force(self, pause_s: float) -> None:
        """Fault point: its last entry was accepted. The force must notice what happens to bookies during the pause."""
        if pause_s:
            await pause(self.model.context, pause_s)

    async def close(self) -> None:
        """Close the ledger in order. If that is refused, or its outcome unknown, abandon it."""
        writer, model = self.ledger.writer, self.model
        try:
            if writer.deferred_sync and writer.failure is None and self._rng.random() < 0.8:
                await self.force()
            last = await writer.close(wait=self._rng.random() < 0.8)
        except (LedgerError, BookieError, HandleClosed, MetadataError) as error:
            model.context.count_unknown(error)
        else:
            # Entries carry lengths in the order of appending. If that is not the order of ids, a faster recovery may find another length.
            model.note_end(writer.ledger_id, self.ledger.writer_name, last, writer.length if self.ledger.is_plain else None)
            model.count("closed")
        self.abandon()

    def abandon(self) -> None:
        """Stop writing."""
        self.ledger.writer.abandon()
        self.ledger.abandoned = True
        self.model.retire(self.ledger)

    def _append(self, writer: LedgerWriter) -> bool:
        """Append one or a few entries without waiting. False when the window is full."""
        return self.send(writer, self._rng.randrange(2, 6) if self._rng.random() < 0.15 else 1)

    def send(self, writer: LedgerWriter, count: int) -> bool:
        """Append `count` entries at once without waiting. False when the window is full.

        Raises:
            LedgerError, HandleClosed: the ledger accepts no more.
        """
        first = writer.last_add_pushed + 1
        payloads = [self._payload(first + index) for index in range(count)]
        carried = writer.last_add_confirmed
        future: asyncio.Future[int] | asyncio.Future[range]
        try:
            future = writer.append_nowait(payloads[0]) if count == 1 else writer.append_many_nowait(payloads)
        except (WindowFull, ArgumentError):
            self.model.count("window_full")
            return False
        for index, payload in enumerate(payloads):
            self.model.note_sent(self.ledger, first + index, payload, first + count - 1)
            self._carried[first + index] = carried
        self.appended += count
        future.add_done_callback(lambda done: self._append_done(range(first, first + count), done))
        return True

    async def _append_and_wait(self, writer: LedgerWriter, count: int = 0) -> None:
        """Append one or many and wait. They may exceed the window. No other task appends, so the ids are known before."""
        count = count or (1 if self._rng.random() < 0.5 else self._rng.randrange(2, 12))
        first = writer.last_add_pushed + 1
        payloads = [self._note_sent(first + index, first + count - 1) for index in range(count)]
        appending = writer.append(payloads[0]) if count == 1 else writer.append_many(payloads)
        await self._await_append(appending, range(first, first + count))

    async def _await_append(self, appending: object, entry_ids: range) -> None:
        self.appended += len(entry_ids)
        self._note_result(entry_ids, await appending)  # type: ignore[misc]

    def _append_shuffled(self, writer: AdvLedgerWriter) -> None:
        """Append with ids in random order. Entries that do not fit into the window are retried before anything else."""
        load, rng = self.model.load, self._rng
        if len(self._shuffled) < load.burst:
            ids = list(range(self._next, self._next + rng.randrange(1, 2 * load.burst)))
            self._next = ids[-1] + 1
            rng.shuffle(ids)
            self._shuffled += [(entry_id, self._payload(entry_id)) for entry_id in ids]
        left: list[tuple[int, bytes]] = []
        for index, (entry_id, payload) in enumerate(self._shuffled):
            # Sometimes a gap stays open for a while.
            if index and rng.random() < 0.1:
                left.append((entry_id, payload))
                continue
            carried = writer.last_add_confirmed
            try:
                future = writer.append_nowait(entry_id, payload)
            except WindowFull:
                self.model.count("window_full")
                left.append((entry_id, payload))
                continue
            self.model.note_sent(self.ledger, entry_id, payload)
            self._carried[entry_id] = carried
            self.appended += 1
            future.add_done_callback(self._done_callback(entry_id))
        self._shuffled = left

    def _done_callback(self, entry_id: int) -> Callable[[asyncio.Future[int]], None]:
        return lambda done: self._append_done(range(entry_id, entry_id + 1), done)

    def _note_sent(self, entry_id: int, last_of_append: int = -1, payload: bytes | None = None) -> bytes:
        """Record a payload that is about to be sent; a new one where none is given."""
        payload = self._payload(entry_id) if payload is None else payload
        self.model.note_sent(self.ledger, entry_id, payload, last_of_append)
        self._carried[entry_id] = self.ledger.writer.last_add_confirmed
        return payload

    def _append_done(self, entry_ids: range, done: asyncio.Future[int] | asyncio.Future[range]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self.model.context.count_unknown(error)
        elif not done.cancelled():
            self._note_result(entry_ids, done.result())

    def _note_result(self, entry_ids: range, result: object) -> None:
        expected = entry_ids if isinstance(result, range) else entry_ids[0]
        assert result == expected, f"appended as {entry_ids}, acknowledged as {result}"
        for entry_id in entry_ids:
            if self.ledger.writer.deferred_sync:
                self._unforced.append(entry_id)
                self.model.count("accepted")
            else:
                self.model.note_acknowledged(self.ledger, entry_id, self._carried.pop(entry_id))

    def _payload(self, entry_id: int) -> bytes:
        head = f"{self.ledger.ledger_id} {entry_id} ".encode()
        return head + b"." * self._rng.randrange(self.model.load.payload_high_bytes)


class LedgerWriterActor:
    """The state of one writer over all its lives; see the module."""

    def __init__(self, model: LedgerModel, name: str, kind: str) -> None:
        self._model = model
        self._context = model.context
        self._name = name
        self._kind = kind
        self._rng = self._context.rng(name)
        self._paused: list[_PausedLedger] = []
        model.writing[name] = None

    async def __call__(self, client: Client) -> None:
        model, faults_over = self._model, self._context.faults_over
        self._paused = []
        for ledger in model.of_writer.get(self._name, []):
            ledger.abandoned = True
            model.retire(ledger)
        while True:
            is_proof = faults_over.is_set()
            if not is_proof and len(model.of_writer.get(self._name, [])) >= model.load.ledgers:
                await faults_over.wait()
                continue
            appender = await self._begin(client)
            if appender is None:
                await pause(self._context, 0.3)
            elif is_proof:
                if await self._prove(appender):
                    break
            else:
                await self._write(appender)
        await self._resume_paused(all_of_them=True)
        model.writing.pop(self._name, None)

    async def _begin(self, client: Client) -> LedgerAppends | None:
        model = self._model
        ensemble_size, write_quorum, ack_quorum = self._sizes()
        create = client.create_adv if "adv" in self._kind else client.create
        try:
            writer: WriteHandle = await create(
                ensemble_size=ensemble_size,
                write_quorum=write_quorum,
                ack_quorum=ack_quorum,
                digest_type=model.digest,
                password=PASSWORD,
                deferred_sync="deferred" in self._kind,
            )
        except (NotEnoughBookies, MetadataError) as error:
            self._context.count_unknown(error)
            return None
        host = self._context.cluster.client(self._name).host
        assert host is not None
        ledger = KnownLedger(writer.ledger_id, self._name, self._kind, writer, host, self._context.time())
        model.add(ledger)
        model.count("ledgers")
        return LedgerAppends(model, ledger, "pen")

    def _sizes(self) -> tuple[int, int, int]:
        """Sizes of a new ledger, limited to the number of bookies that will run again."""
        load, cluster = self._model.load, self._context.cluster
        most = len(cluster.bookies) - len(self._context.lost_bookies)
        return min(load.ensemble_size, most), min(load.write_quorum, most), min(load.ack_quorum, most)

    async def _write(self, appender: LedgerAppends) -> None:
        load, rng = self._model.load, self._rng
        wanted = rng.randrange(1, 2 * load.entries + 1)
        try:
            while appender.appended < wanted and not self._context.faults_over.is_set():
                await appender.burst()
                if not self._context.faults_over.is_set() and rng.random() < load.break_share:
                    self._break_connections(appender.ledger)
                await pause(self._context, rng.expovariate(1.0 / self._pause_mean_s()))
                await self._resume_paused()
        except (LedgerError, HandleClosed) as error:
            self._context.count_unknown(error)
            if isinstance(error, LedgerFenced | LedgerClosed):
                self._model.count("fenced")
            if rng.random() < 0.5:
                appender.abandon()
                return
        await self._finish_ledger(appender)

    def _pause_mean_s(self) -> float:
        """Average pause of a writer: shorter where faults have kept the run below its minimum."""
        is_late = self._model.acknowledged_count < LEAST_PER_S * self._context.time()
        return self._model.load.pause_mean_s * (0.3 if is_late else 1.0)

    def _break_connections(self, ledger: KnownLedger) -> None:
        """Break connections to bookies of the ensemble right after a burst, several at once in some cases. In some cases have the ledger
        recovered while its ensemble changes."""
        rng, world = self._rng, self._context.world
        ensemble = list(ledger.writer.metadata.last_segment.ensemble)
        for bookie_id in rng.sample(ensemble, min(len(ensemble), rng.choice([1, 1, 2, 3]))):
            # In the world's context, not the writer's.
            world.loop.call_later(rng.choice([0.0, 0.001, 0.01]), world.network.reset, self._name, bookie_id, context=context_of(None))
        self._model.count("breaks")
        if rng.random() < self._model.load.zombie_share:
            self._model.recover_now(ledger)

    async def _finish_ledger(self, appender: LedgerAppends) -> None:
        rng, load = self._rng, self._model.load
        if self._context.faults_over.is_set() or rng.random() < load.close_share:
            await appender.close()
        elif rng.random() < load.dormant_share:
            # For all other actors it has no writer any more, and is recovered.
            appender.ledger.abandoned = True
            # Some stay paused until the end: a fence must hold through everything that happened since.
            sleeps_s = rng.uniform(0.5, 8.0) if rng.random() < 0.7 else math.inf
            self._paused.append(_PausedLedger(appender, self._context.time() + sleeps_s))
        else:
            appender.abandon()

    async def _resume_paused(self, *, all_of_them: bool = False) -> None:
        """Append once more to paused ledgers."""
        now = self._context.time()
        for paused in [paused for paused in self._paused if all_of_them or paused.wakes_s <= now]:
            self._paused.remove(paused)
            self._model.count("woken")
            try:
                await paused.appender.burst()
                if not all_of_them:
                    await pause(self._context, 0.05)
            except (LedgerError, HandleClosed) as error:
                self._context.count_unknown(error)
            if self._rng.random() < 0.5:
                await paused.appender.close()
            else:
                paused.appender.abandon()

    async def _prove(self, appender: LedgerAppends) -> bool:
        """Whether an append was acknowledged and the ledger closed after the faults."""
        try:
            await appender.prove()
        except (LedgerError, BookieError, HandleClosed, MetadataError) as error:
            self._context.count_unknown(error)
            appender.abandon()
            await pause(self._context, 0.2)
            return False
        await appender.close()
        if not appender.ledger.ended:
            await pause(self._context, 0.2)
        return appender.ledger.ended
