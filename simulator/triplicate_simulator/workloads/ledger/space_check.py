"""The end of the ledger workload: deleted ledgers are gone from the bookies, and their space is freed."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import MetadataError, TriplicateError
from triplicate.sim.disk_image import Inode
from triplicate.sim.host import NodeDied
from triplicate_simulator.cluster.bookie_setup import LEDGER_DIRECTORY
from triplicate_simulator.cluster.plan import Plan
from triplicate_simulator.cluster.simulated_cluster import BookieNode
from triplicate_simulator.workloads.ledger.ledger_model import LedgerModel

LOOK_S = 1.0
ROUNDS = 3
"""Rounds of garbage collection after the trash period within which a bookie must have dropped deleted ledgers, each with the answers it
waits for."""
SPARE_S = 12.0
"""Additional time, in which an unfinished round is repeated, and a bookie without space waits."""
QUESTIONS = 4
"""Metadata queries of a round about a ledger that is due and not in the trash: whether it exists, whether it is in the trash, and both
again. Other ledgers need fewer."""
LOGS_LEFT = 4
"""Entry logs that may stay without live entries: those being filled, by flushes and by compaction, the last log of the newest flush, and
one that holds fences of deleted ledgers."""
ENTRY_LOG_SUFFIX = ".entries"


class SpaceCheck:
    """Waits until every intact bookie has dropped the deleted ledgers."""

    def __init__(self, model: LedgerModel) -> None:
        self._model = model
        self._context = model.context

    async def carry_out(self) -> None:
        """Run the check. Bookies that still hold deleted ledgers become problems of the run."""
        model, context = self._model, self._context
        if model.load.clears:
            # Later deletions are no loss.
            context.cluster.store.observer = None
            await context.finish_by_deadline([context.keep_running("clearance", self._delete_all)])
        elif not model.deleted_s:
            return
        bound_s = allowed_s(context.plan, len(model.deleted_s))
        left = [node for node in context.cluster.bookies.values() if not node.lost and not node.rotten]
        # A worker's task that began while its disk was slow keeps its original duration, and answers only at its end.
        why = {node.name: await self._remaining_data(node) for node in left}
        began_s = context.time()
        while left and context.time() <= began_s + bound_s:
            why = {node.name: await self._remaining_data(node) for node in left}
            left = [node for node in left if why[node.name]]
            if left:
                await asyncio.sleep(LOOK_S)
        for node in left:
            context.problems.append(f"space: {bound_s:.0f} s after faults have stopped {node.name} {why[node.name]}")
        if model.load.clears:
            model.count("clearances")

    async def _delete_all(self, client: Client) -> None:
        ledger_ids = [ledger_id async for ledger_id in client.ledger_ids()]
        for ledger_id in ledger_ids:
            while True:
                try:
                    await client.metadata.ledgers.delete(ledger_id)
                    break
                except MetadataError as error:
                    self._context.count_unknown(error)
            self._model.deleted_s[ledger_id] = self._context.time()

    async def _remaining_data(self, node: BookieNode) -> str:
        """Deleted data that a bookie still holds; empty when there is none."""
        bookie, host = node.bookie, node.host
        if bookie is None or host is None or not host.alive:
            return "does not run"
        try:
            held = await host.call(bookie.storage.ledger_ids(), name="look at ledgers")
        except (NodeDied, TriplicateError, OSError) as error:
            return f"cannot say what it holds: {error}"
        left = [ledger_id for ledger_id in held if ledger_id in self._model.deleted_s]
        if left:
            return f"still holds {len(left)} ledgers that are deleted, {left[0]} among them"
        if not self._model.load.clears:
            return ""
        logs = [entry for path, entry in self._context.world.disk(node.name).names.live.items() if is_entry_log(path)]
        size = sum(entry.live.size for entry in logs if isinstance(entry, Inode))
        return f"still has {len(logs)} entry logs with {size} bytes, and no ledger" if len(logs) > LOGS_LEFT else ""


def allowed_s(plan: Plan, ledgers: int) -> float:
    """Longest time for which bookies may hold deleted ledgers.

    Queries of a session are answered one after another, each after a delay there and a delay back, each half of the longest on average.
    With slow metadata a round waits longer for its answers than for its interval.
    """
    storage = plan.storage
    answers_s = QUESTIONS * ledgers * plan.metadata_high_s
    return storage.trash_period_s + ROUNDS * (storage.gc_interval_s + answers_s) + SPARE_S


def is_entry_log(path: str) -> bool:
    """Whether a path is that of an entry log."""
    return path.startswith(LEDGER_DIRECTORY) and path.endswith(ENTRY_LOG_SUFFIX)
