"""The end of a play of ledgers: what was deleted is gone from the bookies, and its space is given back."""

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
"""A bookie must have dropped what is deleted after the trash period and so many of its rounds, each with the answers it waits for,"""
SPARE_S = 12.0
"""and this time beside, in which a round that could not be finished is made again, and what has no room waits."""
QUESTIONS = 4
"""A round asks the metadata so often about a ledger that is due and not in the trash: whether it is there, whether it is in the trash, and
both again. About any other it asks less."""
LOGS_LEFT = 4
"""Entry logs that may stay although nothing lives: those that are being filled, by flushes and by compaction, the one with which the newest
flush ends, and one that holds fences of what was deleted."""
ENTRY_LOG_SUFFIX = ".entries"


class SpaceCheck:
    """Waits until every sound bookie has dropped what is deleted."""

    def __init__(self, shelf: LedgerModel) -> None:
        self._shelf = shelf
        self._stage = shelf.stage

    async def carry_out(self) -> None:
        """See the class."""
        shelf, stage = self._shelf, self._stage
        if shelf.load.clears:
            # What is deleted from here on is no loss.
            stage.cluster.store.observer = None
            await stage.by_deadline([stage.keep("clearance", self._delete_all)])
        elif not shelf.gone_s:
            return
        bound_s = allowed_s(stage.plan, len(shelf.gone_s))
        left = [node for node in stage.cluster.bookies.values() if not node.lost and not node.rotten]
        # What a worker began while its disk was slow takes as long as was reckoned then, and answers nothing before it has ended.
        why = {node.name: await self._what_is_left(node) for node in left}
        began_s = stage.time()
        while left and stage.time() <= began_s + bound_s:
            why = {node.name: await self._what_is_left(node) for node in left}
            left = [node for node in left if why[node.name]]
            if left:
                await asyncio.sleep(LOOK_S)
        for node in left:
            stage.problems.append(f"space: {bound_s:.0f} s after faults have stopped {node.name} {why[node.name]}")
        if shelf.load.clears:
            shelf.count("clearances")

    async def _delete_all(self, client: Client) -> None:
        ledger_ids = [ledger_id async for ledger_id in client.ledger_ids()]
        for ledger_id in ledger_ids:
            while True:
                try:
                    await client.metadata.ledgers.delete(ledger_id)
                    break
                except MetadataError as error:
                    self._stage.note_unknown(error)
            self._shelf.gone_s[ledger_id] = self._stage.time()

    async def _what_is_left(self, node: BookieNode) -> str:
        """What a bookie still holds of deleted ledgers; empty when there is nothing."""
        bookie, host = node.bookie, node.host
        if bookie is None or host is None or not host.alive:
            return "does not run"
        try:
            held = await host.call(bookie.storage.ledger_ids(), name="look at ledgers")
        except (NodeDied, TriplicateError, OSError) as error:
            return f"cannot say what it holds: {error}"
        left = [ledger_id for ledger_id in held if ledger_id in self._shelf.gone_s]
        if left:
            return f"still holds {len(left)} ledgers that are deleted, {left[0]} among them"
        if not self._shelf.load.clears:
            return ""
        logs = [entry for path, entry in self._stage.world.disk(node.name).names.live.items() if is_entry_log(path)]
        size = sum(entry.live.size for entry in logs if isinstance(entry, Inode))
        return f"still has {len(logs)} entry logs with {size} bytes, and no ledger" if len(logs) > LOGS_LEFT else ""


def allowed_s(plan: Plan, ledgers: int) -> float:
    """How long bookies may still hold some of so many ledgers after these were deleted.

    A session's questions are answered one after another here, each after a delay there and a delay back, of which either lasts half of the
    longest on average. Where the metadata is slow, a round takes longer for its answers than it waits for its time.
    """
    storage = plan.storage
    answers_s = QUESTIONS * ledgers * plan.metadata_high_s
    return storage.trash_period_s + ROUNDS * (storage.gc_interval_s + answers_s) + SPARE_S


def is_entry_log(path: str) -> bool:
    """By its name."""
    return path.startswith(LEDGER_DIRECTORY) and path.endswith(ENTRY_LOG_SUFFIX)
