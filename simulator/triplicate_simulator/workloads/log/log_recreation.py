"""A log that is deleted and created again under its name, with operations that hang across that."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from triplicate.client import Client
from triplicate.errors import ArgumentError, NoSuchLog, SessionExpired
from triplicate.log import Logs
from triplicate_simulator.checkers.recreation_rules import NextLifeRead
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel
from triplicate_simulator.workloads.recreation.held_nodes import AtPoint
from triplicate_simulator.workloads.recreation.recreation import LateOperation, NameHolder, Recreation

RECREATED = "recreated"
"""The log's name."""
MOMENTS = ("log.head_change", "log.head_change", "log.delete_nodes")
"""Fault points at which an operation hangs."""


class LogRecreation(Recreation):
    """See the module's docstring."""

    FAILURES = (SessionExpired, *UNKNOWN_OUTCOMES)

    def __init__(self, model: LogModel) -> None:
        super().__init__(model.context)
        self._model = model
        self._lives = 0

    def draw_operation(self) -> LateOperation:
        moment, operation = AtPoint(self.rng.choice(MOMENTS)), self.rng.choice((_alter, _truncate, _take_over, _delete, _delete))
        return LateOperation(self.LATE, moment, partial(self.on, self.LATE, self._with_logs(operation)))

    def _with_logs(self, operation: Callable[[Logs], Awaitable[None]]) -> Callable[[Client], Awaitable[None]]:
        return lambda client: operation(self._model.logs(client))

    async def remove(self, client: Client) -> None:
        with contextlib.suppress(NoSuchLog):
            await self._model.logs(client).delete(RECREATED, force=True)

    async def first_life(self, client: Client) -> None:
        await self._begin_life(client)

    async def _begin_life(self, client: Client) -> NameHolder:
        """Create the log and write to it."""
        await self.remove(client)
        self._lives += 1
        logs = self._model.logs(client)
        head = await logs.create(RECREATED, self._model.log_settings(RECREATED))
        values = [b"life %d, record %d" % (self._lives, number) for number in range(3)]
        async with await logs.writer(RECREATED, owner=self.OWNER) as writer:
            await writer.append_many(values)
        return NameHolder(head.log_id, tuple(values))

    async def next_life(self, client: Client) -> NameHolder:
        logs = self._model.logs(client)
        version = (await logs.store.read_deleted(RECREATED)).version
        life = await self._begin_life(client)
        # The same number, so that a version alone does not stop the change.
        while (await logs.store.read(RECREATED)).version < version:
            await logs.alter(RECREATED, {"roll_age_s": self.rng.uniform(100.0, 200.0)})
        return life

    async def judge(self, client: Client, life: NameHolder, *, is_last: bool) -> None:
        found_id = None
        records: list[bytes] = []
        logs = self._model.logs(client)
        await client.metadata.tree.sync(logs.store.path(RECREATED))
        with contextlib.suppress(NoSuchLog):
            found_id = (await logs.head(RECREATED)).log_id
            records = [record.value or b"" async for record in logs.records(RECREATED, to="latest")]
        name = f"log {RECREATED}"
        self._model.add(NextLifeRead(self._model.time(), name, life.identity, life.acknowledged, found_id, tuple(records)))
        self.counts["recreated"] += 1


async def _alter(logs: Logs) -> None:
    await logs.alter(RECREATED, {"roll_age_s": 77.0})


async def _truncate(logs: Logs) -> None:
    with contextlib.suppress(ArgumentError):  # A fault may have ended the log's writer before its records.
        await logs.truncate(RECREATED, 2)


async def _take_over(logs: Logs) -> None:
    await (await logs.writer(RECREATED)).close()


async def _delete(logs: Logs) -> None:
    await logs.delete(RECREATED, force=True)
