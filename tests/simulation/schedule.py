"""A cluster on which a test plays a schedule by hand, step by step, and whose clients' history is judged afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from triplicate.client import Client, LedgerWriter
from triplicate.config import ClientSettings
from triplicate.metadata import InjectedFault
from triplicate.sim import World
from triplicate_simulator import LEDGER_CHECKERS, ClusterOptions, History, Plan, RunContext, SimulatedCluster, judge
from triplicate_simulator.cluster.bookie_setup import bookie_settings
from triplicate_simulator.cluster.plan import PLAIN_SETUP, BookieSetup
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD, KnownLedger, LedgerModel
from triplicate_simulator.workloads.ledger.ledger_readers import FinalLedgerReader
from triplicate_simulator.workloads.ledger.ledger_writers import LedgerAppends

Result = TypeVar("Result")

PATIENCE_S = 60.0


@dataclass
class ManualWriter:
    """A writer in the manual of a test."""

    writer: LedgerWriter
    appender: LedgerAppends

    @property
    def ledger_id(self) -> int:
        return self.writer.ledger_id

    @property
    def ensemble(self) -> tuple[str, ...]:
        """The bookies of the last segment, in the order of the write set of entry 0."""
        return self.writer.metadata.last_segment.ensemble

    def send(self, count: int = 1) -> None:
        """Append `count` entries separately; the history records each outcome."""
        for _ in range(count):
            assert self.appender.send(self.writer, 1)

    async def settled(self) -> None:
        """Wait until everything sent is acknowledged."""
        while self.writer.last_add_confirmed < self.writer.last_add_pushed:
            assert self.writer.failure is None, str(self.writer.failure)
            await asyncio.sleep(0.001)

    async def confirmed(self, entry_id: int) -> None:
        """Wait until an entry is acknowledged."""
        while self.writer.last_add_confirmed < entry_id:
            await asyncio.sleep(0.001)


class Schedule:
    """See the module's text.

    Args:
        storage: of the bookies; clients keep what they delete as long as these, or for a day where they keep nothing.
        settings: of the clients; a bookie that is silent is waited for unless they say otherwise.
    """

    def __init__(self, seed: int = 1, *, bookies: int = 3, storage: BookieSetup = PLAIN_SETUP, **settings: Any) -> None:
        patient = {"add_timeout_s": PATIENCE_S, "read_timeout_s": 1.0, "connect_timeout_s": 1.0}
        if storage.trash_period_s > 0:
            patient["trash_period_s"] = storage.trash_period_s
        options = ClusterOptions(
            bookies=bookies, bookie_settings=bookie_settings(storage), client_settings=ClientSettings(**{**patient, **settings})
        )
        self.world = World(seed, time_max_s=2000.0)
        self.cluster = SimulatedCluster(self.world, options)
        self.network = self.world.network
        self.points = self.world.points
        load = LedgerLoad()
        self.context = RunContext(self.world, self.cluster, Plan("ledgers", load, storage=storage))
        self.model = LedgerModel(self.context, load)
        assert self.cluster.store.fault is not None
        self._usual_fault = self.cluster.store.fault
        self._tasks: list[asyncio.Task[Any]] = []

    def run(self, script: Callable[[], Coroutine[Any, Any, None]]) -> History:
        """Run the script, bring everything to its end, read everything, and see that the checkers find nothing."""
        try:
            self.world.run(self._run(script))
        finally:
            self.world.close()
        history = self.context.history
        found = [f"{verdict.checker}: {violation}" for verdict in judge(history, LEDGER_CHECKERS) for violation in verdict.violations]
        found += self.context.problems
        assert not found, "\n".join(found)
        return history

    async def _run(self, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await self.cluster.start()
        await script()
        for task in self._tasks:
            task.cancel()
        for name in self.cluster.bookies:
            await self.cluster.bookies[name].restart()
        self.context.deadline_s = self.world.loop.time() + PATIENCE_S
        self.model.retire_all()
        await self.context.finish_by_deadline([self.context.keep_running(FinalLedgerReader.NAME, FinalLedgerReader(self.model))])
        await self.cluster.stop()

    def begin(self, name: str, program: Callable[[Client], Awaitable[Result]]) -> asyncio.Task[Result]:
        """Run a program on a node of its own, beside the script; it is cancelled with the script's end."""
        task = self.world.loop.start_task(self.cluster.client(name).run(program), name=name)
        self._tasks.append(task)
        return task

    async def writing(self, name: str = "writer", *, is_known: bool = False, **sizes: Any) -> ManualWriter:
        """A writer of a new ledger, on a node of its own, that stays there until its node is struck down or the script ends.

        Args:
            is_known: it has written another ledger before, and has connections to all bookies from that.
        """
        made: asyncio.Future[ManualWriter] = self.world.loop.create_future()

        async def write(client: Client) -> None:
            if is_known:
                everybody = len(self.cluster.bookies)
                before = await self.appender(client, name, ensemble_size=everybody, write_quorum=everybody)
                before.send()
                await before.settled()
                await before.appender.close()
            made.set_result(await self.appender(client, name, **sizes))
            await asyncio.Event().wait()

        self.begin(name, write)
        return await made

    async def appender(self, client: Client, name: str, **sizes: Any) -> ManualWriter:
        """Make a ledger; called from the program that runs on the node."""
        writer = await client.create(password=PASSWORD, **sizes)
        host = self.cluster.client(name).host
        assert host is not None
        ledger = KnownLedger(writer.ledger_id, name, "plain", writer, host, self.context.time())
        self.model.add(ledger)
        return ManualWriter(writer, LedgerAppends(self.model, ledger, "by hand"))

    def delay_changes(self, delay_s: float) -> None:
        """Let every change of a node's data take this much longer until it is applied; everything else stays as fast as it is."""
        store, usual = self.cluster.store, self._usual_fault

        def slow(session_id: int, operation: str, path: str) -> InjectedFault | None:
            fault = usual(session_id, operation, path)
            if fault is not None and operation == "set":
                fault.delay_before_s += delay_s
            return fault

        store.fault = slow

    async def delete(self, manual: ManualWriter) -> None:
        """An operator deletes a ledger."""
        self._book(manual).deleted = True
        await self.begin("operator", lambda client: client.delete(manual.ledger_id))

    async def bring_back(self, manual: ManualWriter) -> None:
        """An operator wants it back."""
        self._book(manual).undelete_requested = True
        await self.begin("operator", lambda client: client.undelete(manual.ledger_id))

    def _book(self, manual: ManualWriter) -> KnownLedger:
        return next(ledger for ledger in self.model.ledgers if ledger.ledger_id == manual.ledger_id)

    async def on(self, name: str, action: Callable[[], object]) -> None:
        """Do something as a node that runs."""
        host = self.cluster.client(name).host
        assert host is not None

        async def act() -> None:
            action()

        await host.call(act(), name=f"act on {name}")

    def recovering(self, ledger_id: int, name: str = "recoverer") -> asyncio.Task[int]:
        """Somebody who recovers a ledger, beside the script; the result is its last entry."""

        async def recover(client: Client) -> int:
            async with await client.recover(ledger_id, password=PASSWORD) as reader:
                self.model.note_end(ledger_id, name, reader.last_add_confirmed, reader.length)
                return reader.last_add_confirmed

        return self.begin(name, recover)
