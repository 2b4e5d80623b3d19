"""A log that is deleted and created again under its name, with operations that hang across that.

The operation belongs to the log on which it began. The next log of the name keeps its identity and every record that was acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from triplicate.client import Client
from triplicate.errors import ArgumentError, NoSuchLog, SessionExpired
from triplicate.log import Logs
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate_simulator.checkers.recreation_rules import NextLogRead
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel, pausing, wait_for

RECREATED = "recreated"
"""The log's name."""
MOMENTS = ("log.head_change", "log.head_change", "log.delete_nodes")
"""Fault points at which an operation hangs."""
WAIT_S = 6.0
"""Time for an operation to reach its point."""
END_S = 30.0
"""Time for an operation that goes on to end."""
LATE_S = (0.0, 1.0, 15.0)
"""How much longer it hangs; the longest is longer than its session."""


class Recreation:
    """Deletes and creates the log, while another node hangs in an operation on it.

    The two nodes are spared by the other faults of nodes. Those of bookies and metadata meet them: then a round says nothing.
    """

    OWNER, LATE = "recreator", "meddler"

    def __init__(self, model: LogModel) -> None:
        self._model = model
        self._rng = model.rng("recreation")
        self._lives = 0

    async def run(self, times: int) -> None:
        """Do this `times` times, spread over the time of the faults. Nothing of the log is left afterwards."""
        model = self._model
        for _ in range(times):
            await model.pause(self._rng.uniform(0.3, 1.2) * model.context.plan.duration_s / (times + 1))
            if model.faults_are_over:
                break
            await self._on(self.OWNER, self._live)
            await self._hold_across()
        is_gone = not times
        while not is_gone:
            is_gone = await self._on(self.OWNER, self._delete)

    async def _on(self, node: str, program: Callable[[Client], Awaitable[None]]) -> bool:
        """Run a program on a node. False if a fault ended it."""
        try:
            await self._model.context.cluster.client(node).run(program)
        except (NodeDied, TimeoutError, SessionExpired, *UNKNOWN_OUTCOMES) as error:
            self._model.context.count_unknown(error)
            return False
        return True

    async def _delete(self, client: Client) -> None:
        with contextlib.suppress(NoSuchLog):
            await self._model.logs(client).delete(RECREATED, force=True)

    async def _live(self, client: Client) -> None:
        await self._begin_life(self._model.logs(client))

    async def _begin_life(self, logs: Logs) -> tuple[str, list[bytes]]:
        """Create the log and write to it. Returns its id, and the records that were acknowledged."""
        await self._delete(logs.client)  # type: ignore[arg-type]
        self._lives += 1
        head = await logs.create(RECREATED, self._model.log_settings(RECREATED))
        values = [b"life %d, record %d" % (self._lives, number) for number in range(3)]
        async with await logs.writer(RECREATED, owner=self.OWNER) as writer:
            await writer.append_many(values)
        return head.log_id, values

    async def _hold_across(self) -> None:
        """Let an operation hang while the next log gets the name, and judge that log when the operation has ended."""
        model, rng = self._model, self._rng
        held: list[SimulatedHost] = []
        reached = asyncio.Event()
        trap = model.context.world.points.trap(rng.choice(MOMENTS), pausing(model, held, reached), node=self.LATE)
        operation = rng.choice((_alter, _truncate, _take_over, _delete, _delete))
        late = model.context.world.loop.start_task(self._on(self.LATE, lambda client: operation(model.logs(client))), name="late")
        await asyncio.wait(
            [late, model.context.world.loop.start_task(wait_for(reached, WAIT_S), name="late reaches")], return_when="FIRST_COMPLETED"
        )
        trap.cancel()

        async def next_life(client: Client) -> None:
            logs = model.logs(client)
            version = (await logs.store.read_deleted(RECREATED)).version
            log_id, values = await self._begin_life(logs)
            # The same number, so that a version alone does not stop the change.
            while (await logs.store.read(RECREATED)).version < version:
                await logs.alter(RECREATED, {"roll_age_s": rng.uniform(100.0, 200.0)})
            if held:
                await asyncio.sleep(rng.choice(LATE_S))
                held[0].resume()
            await asyncio.wait([late], timeout=END_S)
            await self._judge(logs, log_id, values)

        try:
            await self._on(self.OWNER, next_life)
        finally:
            if held:
                held[0].resume()
                model.count("held_across")
            await asyncio.wait([late])

    async def _judge(self, logs: Logs, log_id: str, values: list[bytes]) -> None:
        model, found_id = self._model, None
        records: list[bytes] = []
        with contextlib.suppress(NoSuchLog):
            found_id = (await logs.head(RECREATED)).log_id
            records = [record.value or b"" async for record in logs.records(RECREATED, to="latest")]
        model.add(NextLogRead(model.time(), RECREATED, log_id, tuple(values), found_id, tuple(records)))
        model.count("recreated")


async def _alter(logs: Logs) -> None:
    await logs.alter(RECREATED, {"roll_age_s": 77.0})


async def _truncate(logs: Logs) -> None:
    with contextlib.suppress(ArgumentError):  # A fault may have ended the log's writer before its records.
        await logs.truncate(RECREATED, 2)


async def _take_over(logs: Logs) -> None:
    await (await logs.writer(RECREATED)).close()


async def _delete(logs: Logs) -> None:
    await logs.delete(RECREATED, force=True)
