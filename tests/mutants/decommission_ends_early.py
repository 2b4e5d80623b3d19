"""A decommission ends while a ledger still names the bookie, because its repair waits for a writer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import Obstacle, ReplicationWorker, decommission
from triplicate.client import BookieCopies

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_a_writer_that_stays_is_named_and_never_fenced",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def move_ledgers(run: decommission._Decommission, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
        await run._move(worker, await run._named_by())
        return ()

    patch(decommission._Decommission, "move_ledgers", move_ledgers)
