"""A second decommission that begins beside the first, and must be refused: too few bookies would remain for both.

It stands still between its check and its requests, until the first one has made its own. So it finds out only afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from triplicate.autorecovery import decommission_bookie
from triplicate.client import Client
from triplicate.errors import ArgumentError, BookieError, EnvironmentFault, LedgerError, MetadataError, NoNode
from triplicate.metadata import own_paths
from triplicate.sim.host import NodeDied, SimulatedHost
from triplicate_simulator.checkers.request_rules import DecommissionRefused
from triplicate_simulator.workloads.recreation.held_nodes import AtMetadata, pausing, wait_for
from triplicate_simulator.workloads.repair.repair_load import MACHINES
from triplicate_simulator.workloads.repair.repair_model import RepairModel

FAILURES = (MetadataError, BookieError, LedgerError, EnvironmentFault, ArgumentError)
AHEAD_S = 1.0
"""It begins this long before the first decommission."""
WAIT_S = 12.0
"""Time for it to reach its requests, and then for the first decommission to make one."""
POLL_S = 0.02
ONLOOKER = "rival-onlooker"
KEPT = 3
"""Bookies on as many machines that it leaves, one of which the first decommission takes out."""


class RivalDecommission:
    """See the module's docstring."""

    NAME = "rival"

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._context = model.context
        self._rng = model.context.rng(self.NAME)
        self._bookies: tuple[str, ...] = ()
        """Those that it takes out."""

    async def run(self) -> None:
        """Do this once. Nothing of it is left afterwards."""
        context = self._context
        await wait_for(context.faults_over, max(0.0, self._model.load.decommission_at_s - AHEAD_S))
        if not context.faults_over.is_set() and await self._on(self._prepare) and self._bookies:
            await self._run_beside()
            while not await self._on(self._withdraw):
                pass

    async def _on(self, program: Callable[[Client], Awaitable[None]], node: str = NAME) -> bool:
        """Run a program on a node. False if a fault ended it."""
        try:
            await self._context.cluster.client(node).run(program)
        except (NodeDied, TimeoutError, *FAILURES) as error:
            self._context.count_unknown(error)
            await self._context.cluster.client(node).restart()
            return False
        return True

    async def _prepare(self, client: Client) -> None:
        """Choose the bookies, and make one of them read-only in half of the cases."""
        requested = await client.metadata.read_only_requests.bookie_ids()
        writable = [name for name in await client.metadata.bookies.writable() if name not in requested]
        first = self._model.load.decommission
        kept = {MACHINES[first]: first}
        for name in self._rng.sample(writable, len(writable)):
            if len(kept) < KEPT:
                kept.setdefault(MACHINES[name], name)
        if first not in writable or len(kept) < KEPT or len(writable) == KEPT:
            return
        self._bookies = tuple(sorted(name for name in writable if name not in kept.values()))
        if self._rng.random() < 0.5:
            # Another operator has made one of them read-only before.
            await client.metadata.read_only_requests.request(self._bookies[-1])

    async def _run_beside(self) -> None:
        """Let it stand still until the first decommission has made its request."""
        loop, held, reached = self._context.world.loop, list[SimulatedHost](), asyncio.Event()
        node = self._context.cluster.client(self.NAME)
        # The first read of this request is its own, before the decommission.
        moment = AtMetadata(1, part=f"/readonly/{self._bookies[0]}")
        cancel = moment.watch(self._context, self.NAME, pausing(self._context, held, reached))
        # It must not go on where nothing has refused it.
        trap = self._context.world.points.trap("autorecovery.decommission", lambda _: node.crash(), node=self.NAME)
        task = loop.start_task(self._decommission_once(), name=self.NAME)
        await asyncio.wait([task, loop.start_task(wait_for(reached, WAIT_S), name="rival reaches")], return_when="FIRST_COMPLETED")
        cancel()
        if held:
            if not await self._on(self._await_first, ONLOOKER):
                node.crash()
            held[0].resume()
        await asyncio.wait([task])
        trap.cancel()

    async def _decommission_once(self) -> None:
        await self._on(self._decommission)

    async def _await_first(self, client: Client) -> None:
        """Wait for the request of the first decommission."""
        async with asyncio.timeout(WAIT_S):
            while self._model.load.decommission not in await client.metadata.read_only_requests.bookie_ids():  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)

    async def _decommission(self, client: Client) -> None:
        before = await self._requests(client, self._bookies)
        settings, writers = self._model.load.autorecovery(), self._model.living_writers(client)
        report = await decommission_bookie(client, self._bookies, settings=settings, has_living_writer=writers)
        if report.is_refused:
            after = await self._requests(client, self._bookies)
            self._context.history.add(DecommissionRefused(self._context.time(), before, after))
            self._model.count("rivals_refused")

    async def _requests(self, client: Client, bookies: Sequence[str]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for name in bookies:
            try:
                found[name], _ = await client.metadata.tree.get(own_paths.read_only_request_path(client.metadata.own_root, name))
            except NoNode:
                found[name] = None
        return found

    async def _withdraw(self, client: Client) -> None:
        """Withdraw all requests, also that of the other operator."""
        for name in self._bookies:
            await client.metadata.read_only_requests.withdraw(name)
