"""A writer that ends while its process cannot reach the metadata: its owner's node is released later, in the same session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from triplicate.client import Client
from triplicate.errors import LogOwned, NoSuchLog, SessionExpired
from triplicate.log import Logs
from triplicate.sim.host import NodeDied
from triplicate_simulator.checkers.owner_rules import OwnerEnded
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel

LEFT = "left"
"""The log's name."""
SUCCESSION_S = 10.0
"""Time for the next writer to get the log."""
SETTLE_S = 1.0


class StrandedOwner:
    """Lets a writer end without the metadata, and another one ask for its log."""

    OWNER, SUCCESSOR = "leaver", "successor"

    def __init__(self, model: LogModel) -> None:
        self._model = model
        self._rng = model.rng("stranded owner")

    async def run(self, times: int) -> None:
        """Do this `times` times, spread over the time of the faults. Nothing of the log is left afterwards."""
        model = self._model
        for _ in range(times):
            await model.pause(self._rng.uniform(0.1, 1.0) * model.context.plan.duration_s / (times + 1))
            if not model.faults_are_over:
                await self._on(self.OWNER, self._end)
        while times and not await self._on(self.SUCCESSOR, self._delete):
            pass

    async def _on(self, node: str, program: Callable[[Client], Awaitable[None]]) -> bool:
        """Run a program on a node. False if a fault ended it."""
        try:
            await self._model.context.cluster.client(node).run(program)
        except (NodeDied, TimeoutError, SessionExpired, *UNKNOWN_OUTCOMES) as error:
            self._model.context.count_unknown(error)
            return False
        return True

    async def _end(self, client: Client) -> None:
        await self._delete(client)
        model, logs = self._model, self._model.logs(client)
        await logs.create(LEFT, model.log_settings(LEFT))
        writer = await logs.writer(LEFT, owner=self.OWNER)
        await writer.append_many([b"record"])
        session_id = client.metadata.tree.session_id
        with model.context.cluster.without_metadata([self.OWNER]):
            try:
                await writer.close()
            except UNKNOWN_OUTCOMES as error:
                model.context.count_unknown(error)
            finally:
                await writer.abandon()
        await logs.head(LEFT)
        await asyncio.sleep(SETTLE_S)
        if client.metadata.tree.session_id == session_id:
            await self._on(self.SUCCESSOR, self._succeed)

    async def _succeed(self, client: Client) -> None:
        """Ask for the log as a writer that takes it from nobody."""
        logs, is_free = self._model.logs(client), True
        async with asyncio.timeout(SUCCESSION_S):
            try:
                await (await logs.writer(LEFT, owner=self.SUCCESSOR, take_over=False)).close()
            except LogOwned:
                is_free = False
        self._model.add(OwnerEnded(self._model.time(), LEFT, self.OWNER, self.SUCCESSOR, is_free))
        self._model.count("owners_stranded")

    async def _delete(self, client: Client) -> None:
        logs: Logs = self._model.logs(client)
        with suppress(NoSuchLog):
            await logs.delete(LEFT, force=True)
