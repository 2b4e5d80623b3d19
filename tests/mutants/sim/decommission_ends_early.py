"""A decommission takes the first look at the ledgers for the last one, and removes the bookie."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("decommissioned_bookies_are_not_needed",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import decommission
    from triplicate.autorecovery.decommission_progress import Obstacle
    from triplicate.autorecovery.worker import ReplicationWorker
    from triplicate.client import BookieCopies

    async def all_moved(self: object, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
        return ()

    patch(decommission._Decommission, "move_ledgers", all_moved)
