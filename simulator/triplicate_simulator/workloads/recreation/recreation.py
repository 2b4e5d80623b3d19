"""Something that is deleted and made again under its name, with operations that hang across that.

An operation belongs to the one on which it began. The next one of the name keeps its identity, its properties, and everything that was
acknowledged, and gets nothing of the one before.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from triplicate.client import Client
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.recreation.held_nodes import HoldMoment, pausing, wait_for

WAIT_S = 6.0
"""Time for an operation to reach its moment."""
END_S = 30.0
"""Time for an operation that goes on to end."""


@dataclass(frozen=True, slots=True)
class NameHolder:
    """One of the things that have had the name.

    Args:
        acknowledged: what was written and acknowledged. possible: what may be there besides.
        properties: its properties, as they were set last.
    """

    identity: str
    acknowledged: tuple[bytes, ...]
    possible: tuple[bytes, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LateOperation:
    """An operation during which a node stands still.

    Args:
        node, moment: which one, and when.
        run: the operation. It raises nothing.
        hangs_s: for how long. None: until the next one is there, and some time more; only for a node that nothing else needs.
    """

    node: str
    moment: HoldMoment
    run: Callable[[], Awaitable[object]]
    hangs_s: float | None = None


class Recreation(ABC):
    """Deletes and makes the thing, while another node hangs in an operation on it.

    The two client nodes are spared by the other faults of nodes. Those of others and of the metadata meet them: then a round says nothing.
    """

    OWNER, LATE = "recreator", "meddler"
    LATE_S: ClassVar[tuple[float, ...]] = (0.0, 1.0, 15.0)
    """How much longer an operation hangs; the longest is longer than its session."""
    FAILURES: ClassVar[tuple[type[BaseException], ...]] = ()
    """Errors under faults, after which the outcome is not known."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.rng = context.rng("recreation")
        self.counts = {"held_across": 0, "recreated": 0}
        self._last: NameHolder | None = None
        """The present one, if everything about it is known."""

    async def run(self, times: int) -> None:
        """Do this `times` times, spread over the time of the faults. Nothing of it is left afterwards."""
        for _ in range(times):
            await wait_for(self.context.faults_over, self.rng.uniform(0.3, 1.2) * self.context.plan.duration_s / (times + 1))
            if self.context.faults_over.is_set():
                break
            self._last = None
            if await self.on(self.OWNER, self.first_life):
                await self._hold_across()
        if times:
            await self.context.faults_over.wait()
            while self._last is not None and not await self.on(self.OWNER, self._judge_last):
                pass
            while not await self.on(self.OWNER, self.remove):
                pass

    async def on(self, node: str, program: Callable[[Client], Awaitable[Any]]) -> bool:
        """Run a program on a client node. False if a fault ended it."""
        failures: tuple[type[BaseException], ...] = (NodeDied, TimeoutError, *self.FAILURES)
        try:
            await self.context.cluster.client(node).run(program)
        except failures as error:
            self.context.count_unknown(error)
            return False
        return True

    async def _hold_across(self) -> None:
        """Let an operation hang while the next one gets the name, and judge that one when the operation has ended."""
        loop = self.context.world.loop
        held: list[SimulatedHost] = []
        reached = asyncio.Event()
        late = self.draw_operation()
        cancel = late.moment.watch(self.context, late.node, pausing(self.context, held, reached))
        task = loop.start_task(_awaited(late.run()), name="late")
        await asyncio.wait([task, loop.start_task(wait_for(reached, WAIT_S), name="late reaches")], return_when="FIRST_COMPLETED")
        cancel()
        if not held:
            await asyncio.wait([task])
            return

        async def succeed(client: Client) -> None:
            life = await self.next_life(client)
            if late.hangs_s is None:
                await asyncio.sleep(self.rng.choice(self.LATE_S))
                held[0].resume()
            await asyncio.wait([task], timeout=END_S)
            await self.judge(client, life, is_last=False)
            self._last = life

        try:
            if late.hangs_s is not None:
                loop.call_later(late.hangs_s, held[0].resume)
            await self.on(self.OWNER, succeed)
        finally:
            held[0].resume()
            self.counts["held_across"] += 1
            await asyncio.wait([task])

    async def _judge_last(self, client: Client) -> None:
        assert self._last is not None, "it is judged while there is one"
        await self.judge(client, self._last, is_last=True)

    @abstractmethod
    def draw_operation(self) -> LateOperation:
        """Draw the operation that hangs."""

    @abstractmethod
    async def remove(self, client: Client) -> None:
        """Delete everything that may be left. Idempotent."""

    @abstractmethod
    async def first_life(self, client: Client) -> None:
        """Delete what may be left, make one, and write to it."""

    @abstractmethod
    async def next_life(self, client: Client) -> NameHolder:
        """Delete that one, make another one, and write to it."""

    @abstractmethod
    async def judge(self, client: Client, life: NameHolder, *, is_last: bool) -> None:
        """Read what has the name now, and record that it is to be this one.

        Args:
            is_last: whether the faults are over, so that everything can be waited for.
        """


async def _awaited(operation: Awaitable[object]) -> None:
    await operation
