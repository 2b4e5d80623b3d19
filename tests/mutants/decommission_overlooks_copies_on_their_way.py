"""A decommission does not wait for workers that may have chosen the bookie for copies before it was leaving."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import HeldLock, UnderreplicationManager

TESTS = [
    "tests/unit/autorecovery/test_decommission_beside_others.py::test_a_worker_that_chose_the_bookie_before_holds_up_the_verdict",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(manager: UnderreplicationManager) -> frozenset[HeldLock]:
        return frozenset()

    patch(UnderreplicationManager, "locks", nothing)
