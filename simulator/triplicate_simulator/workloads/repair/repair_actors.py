"""The actors of the repair workload: replication workers, passes by hand, and the audit of all copies in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from triplicate.autorecovery import (
    AutorecoveryDaemon,
    LedgerChecker,
    RepairOutcome,
    ReplicationWorker,
    decommission_bookie,
    mark_copies,
    recover_bookies,
    refill_bookies_in_limbo,
)
from triplicate.client import BookieCopies, Client
from triplicate.errors import (
    ArgumentError,
    BookieError,
    DigestMismatch,
    EnvironmentFault,
    LedgerError,
    MetadataError,
    NoSuchLedger,
    TriplicateError,
)
from triplicate.ledger import EntryCodec
from triplicate.runtime import TaskScope, map_bounded
from triplicate_simulator.checkers.repair_rules import CopyFound, LedgerHealed
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD, holders, pause
from triplicate_simulator.workloads.repair.repair_load import MACHINES
from triplicate_simulator.workloads.repair.repair_model import RepairModel

Result = TypeVar("Result")

LOOK_S = 0.4
"""Pause of a worker that has found no work."""
AT_ONCE = 3
"""Ledgers that one worker repairs at a time."""
ANSWER_S = 3.0
"""Longest wait for a bookie's answer in a check of a ledger."""
READS_AT_ONCE = 8
STALL_S = 20.0
"""Longest wait of a decommission without progress; it is started again afterwards."""
SCRUBS = 2
"""Passes of the scrubbers after the faults, by which damaged copies must be recorded."""


class RepairWorker:
    """One process with a replication worker: locks marked ledgers, several at a time, and repairs them."""

    def __init__(self, model: RepairModel, name: str) -> None:
        self._model = model
        self._context = model.context
        self._name = name
        self._rng = self._context.rng(name)

    async def __call__(self, client: Client) -> None:
        async with client.bookie_copies() as copies:
            writers = self._model.living_writers(client)
            worker = ReplicationWorker(client, copies, self._model.load.autorecovery(), name=self._name, has_living_writer=writers)
            while not self._model.healed:
                try:
                    await self._repair_marked(client, worker)
                except MetadataError as error:
                    self._context.count_unknown(error)
                await asyncio.sleep(LOOK_S)

    async def _repair_marked(self, client: Client, worker: ReplicationWorker) -> None:
        waiting = [mark.ledger_id async for mark in client.metadata.under_replication.marks()]
        self._rng.shuffle(waiting)

        async def repair(ledger_id: int) -> None:
            repaired = await worker.repair(ledger_id)
            if repaired.outcome is RepairOutcome.LOCKED:
                self._model.count("repair.locked")

        await map_bounded(repair, waiting, most=AT_ONCE, name="repairs of ledgers")


class RepairDaemon:
    """One process of auto-recovery: a candidate for the auditor, and a worker."""

    def __init__(self, model: RepairModel, name: str) -> None:
        self._model = model
        self._name = name

    async def __call__(self, client: Client) -> None:
        model = self._model
        writers, chore = model.living_writers(client), partial(model.raise_copies, client)
        daemon = AutorecoveryDaemon(client, model.load.autorecovery(), name=self._name, has_living_writer=writers, chore=chore)
        while True:
            if self._model.healed:
                break
            await asyncio.sleep(LOOK_S)
        assert daemon.failure is None, f"the daemon of {self._name} ended by itself: {daemon.failure!r}"
        await daemon.stop()


class LossMarker:
    """Marks the ledgers of bookies that have been away for a while, as an auditor does."""

    def __init__(self, model: RepairModel, name: str) -> None:
        self._model = model
        self._context = model.context
        self._away_s: dict[str, float] = {}

    async def __call__(self, client: Client) -> None:
        self._away_s = {}
        while not self._model.healed:
            try:
                await self._mark_lost(client)
            except MetadataError as error:
                self._context.count_unknown(error)
            await asyncio.sleep(LOOK_S)

    async def _mark_lost(self, client: Client) -> None:
        bookies = client.metadata.bookies
        registered = {**await bookies.writable(), **await bookies.readonly(), **await bookies.writable()}
        now = self._context.time()
        away = [name for name in self._context.cluster.bookies if name not in registered]
        self._away_s = {name: self._away_s.get(name, now) for name in away}
        lost = [name for name, since_s in self._away_s.items() if now - since_s >= self._model.load.lost_after_s]
        if not lost:
            return
        async for ledger_id in client.ledger_ids():
            try:
                metadata = await client.metadata_of(ledger_id)
            except NoSuchLedger:
                continue
            missing = [name for segment in metadata.segments for name in segment.ensemble if name in lost]
            if missing:
                await client.metadata.under_replication.mark(ledger_id, missing)
                self._model.count("ledgers_marked")


class PassByHand:
    """An operator that starts passes of auto-recovery by hand, beside the workers."""

    def __init__(self, model: RepairModel, name: str) -> None:
        self._model = model
        self._context = model.context
        self._rng = self._context.rng(name)

    async def __call__(self, client: Client) -> None:
        load = self._model.load
        while not self._context.faults_over.is_set():
            await pause(self._context, self._rng.expovariate(1.0 / load.passes_pause_s))
            try:
                writers = self._model.living_writers(client)
                report = await recover_bookies(client, settings=load.autorecovery(), has_living_writer=writers)
            except (MetadataError, BookieError, LedgerError, EnvironmentFault, ArgumentError) as error:
                # No bookie is registered, for one.
                self._context.count_unknown(error)
                continue
            self._model.count("passes")
            if any(repair.outcome is RepairOutcome.LOCKED for repair in report.unrepaired):
                self._model.count("passes_beside_workers")


class Decommissioner:
    """An operator who takes a bookie out of the cluster, again and again until that succeeds, and then stops it for good."""

    NAME = "decommissioner"

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._context = model.context
        self._has_begun = False

    async def __call__(self, client: Client) -> None:
        model, context = self._model, self._context
        if self._has_begun:
            model.count("decommission.interrupted")
        else:
            await pause(context, model.load.decommission_at_s)
        self._has_begun = True
        while True:
            if await self._decommission(client):
                break
            await asyncio.sleep(LOOK_S)
        node = context.cluster.bookies[model.load.decommission]
        if node.alive:
            node.crash(keep_unsynced=True)
        model.count("decommissions")

    async def _decommission(self, client: Client) -> bool:
        name = self._model.load.decommission
        try:
            if name not in await client.metadata.cookies.bookie_ids():
                return True  # The answer to the removal was lost.
            settings, writers = self._model.load.autorecovery(), self._model.living_writers(client)
            report = await decommission_bookie(client, [name], settings=settings, stall_s=STALL_S, has_living_writer=writers)
        except (MetadataError, BookieError, LedgerError, EnvironmentFault, ArgumentError) as error:
            self._context.count_unknown(error)
            return False
        if report.refused:
            self._model.count("decommissions_refused")
        return report.is_removed


class RefillByHand:
    """An operator that fills bookies with replaced disks again, and raises the copies of logs where no daemon does.

    Beside daemons it begins when faults are over: their auditor looks once in a minute, and after an incomplete refill in ten.
    """

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._context = model.context

    async def __call__(self, client: Client) -> None:
        model = self._model
        if model.load.daemons:
            await self._context.faults_over.wait()
        while not model.healed:
            try:
                if model.domains.in_limbo():
                    writers = model.living_writers(client)
                    reports = await refill_bookies_in_limbo(client, settings=model.load.autorecovery(), has_living_writer=writers)
                    model.count("refills", sum(report.complete for report in reports))
                    model.count("refills_incomplete", sum(not report.complete for report in reports))
                if not model.load.daemons:
                    await model.raise_copies(client)
            except (MetadataError, BookieError, LedgerError, EnvironmentFault) as error:
                self._context.count_unknown(error)
            await asyncio.sleep(model.load.refill_pause_s)


class HealingWatch:
    """Waits in the end until every ledger is complete, and marks those that lack copies on bookies that are there."""

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._context = model.context
        self.incomplete: dict[int, str] = {}
        """Ledgers that were not complete at the last look."""

    async def __call__(self, client: Client) -> None:
        await asyncio.sleep(self._model.load.scrub_interval_s * SCRUBS)
        while True:
            try:
                if await self._is_complete(client):
                    break
            except (MetadataError, BookieError, LedgerError, EnvironmentFault) as error:
                self._context.count_unknown(error)
            await asyncio.sleep(LOOK_S)

    async def _is_complete(self, client: Client) -> bool:
        marks = [mark.ledger_id async for mark in client.metadata.under_replication.marks()]
        self.incomplete = dict.fromkeys(marks, "marked")
        ledgers = [ledger_id async for ledger_id in client.ledger_ids()]

        async def examine(ledger_id: int) -> None:
            try:
                checker = LedgerChecker(client, ledger_id, ANSWER_S)
                copies = await (checker.check() if self._model.is_of_log(ledger_id) else checker.check(PASSWORD))
            except NoSuchLedger:
                return
            if not copies.is_complete:
                lacking = [one.bookie_id for one in copies.bookies if one.needs_repair or one.silence]
                self.incomplete[ledger_id] = f"lacks copies on {', '.join(lacking)}"
                # The daemons' auditor must find them by itself.
                if not self._model.load.daemons and await mark_copies(client, copies):
                    self._model.count("copies_marked")

        await map_bounded(examine, ledgers, most=AT_ONCE, name="checks of ledgers")
        reduced = await self._model.reduced_segments(client)
        self.incomplete |= dict.fromkeys(reduced, "a segment of a log with fewer copies")
        if limbo := self._model.domains.in_limbo():
            self.incomplete[-1] = f"in limbo: {', '.join(limbo)}"
        if not self.incomplete:
            self.incomplete = await self._left_behind(client)
        return not self.incomplete and self._model.is_whole()

    async def _left_behind(self, client: Client) -> dict[int, str]:
        """Remains of interrupted work whose processes live: locks, and bookies that get no ledgers."""
        locks = await client.metadata.under_replication.locks()
        found = {lock.ledger_id: f"locked by {lock.worker}" for lock in locks}
        bookies = self._context.cluster.bookies.values()
        serving = [node.name for node in bookies if node.serves and node.name != self._model.load.decommission]
        writable = await client.metadata.bookies.writable()
        if absent := [name for name in serving if name not in writable]:
            found[-2] = f"not writable: {', '.join(absent)}"
        return found


class CopyAudit:
    """Reads every copy of every entry at the end."""

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._context = model.context

    async def __call__(self, client: Client) -> None:
        async with client.bookie_copies() as copies, TaskScope("audit of copies") as scope:
            queue = [ledger_id async for ledger_id in client.ledger_ids()]
            for number in range(READS_AT_ONCE):
                scope.spawn(self._work(client, copies, queue), name=f"audit {number}")

    async def _work(self, client: Client, copies: BookieCopies, queue: list[int]) -> None:
        while queue:
            await self._read_ledger(client, copies, queue.pop())

    async def _read_ledger(self, client: Client, copies: BookieCopies, ledger_id: int) -> None:
        metadata = await self._retry(lambda: client.metadata_of(ledger_id))
        is_of_log = self._model.is_of_log(ledger_id)
        self._context.history.add(LedgerHealed(ledger_id, metadata.last_entry_id, metadata.write_quorum, is_of_log))
        codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password if is_of_log else PASSWORD)
        for entry_id in range(metadata.last_entry_id + 1):
            for bookie_id in holders(metadata, entry_id):
                await self._read(copies, codec, entry_id, bookie_id)

    async def _read(self, copies: BookieCopies, codec: EntryCodec, entry_id: int, bookie_id: str) -> None:
        body, problem = None, ""
        try:
            body = await self._retry(lambda: copies.read(codec, entry_id, bookie_id))
            problem = "" if body is not None else "it has no such entry"
        except TriplicateError as error:
            problem = str(error)
        payload = None if body is None else bytes(codec.decode(body, entry_id).payload)
        found = CopyFound(codec.ledger_id, entry_id, bookie_id, MACHINES[bookie_id], body, payload, problem)
        self._context.history.add(found)

    async def _retry(self, question: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat a request: connections that broke during the faults are found out when they are used."""
        for _ in range(5):
            try:
                return await question()
            except DigestMismatch:
                raise
            except (BookieError, MetadataError, EnvironmentFault) as error:
                self._context.count_unknown(error)
                await asyncio.sleep(0.5)
        return await question()
