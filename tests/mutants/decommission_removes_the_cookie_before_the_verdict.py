"""A decommission removes the cookie as soon as no ledger names the bookie, without comparing lists of entries."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import Obstacle, ReplicationWorker, decommission
from triplicate.client import BookieCopies

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_a_silent_bookie_holds_up_the_verdict",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def judge(run: decommission._Decommission, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
        return ()

    patch(decommission._Decommission, "_judge", judge)
