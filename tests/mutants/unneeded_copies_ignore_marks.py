"""Unneeded copies are deleted although the ledger is marked as under-replicated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/autorecovery/test_unneeded_copies.py::test_copies_of_a_ledger_that_a_worker_may_repair_stay[_marked]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata.underreplication import UnderreplicationManager

    lock = UnderreplicationManager.lock_unmarked

    async def careless(self: UnderreplicationManager, ledger_id: int, worker: str) -> Any:
        get = self.get

        async def unmarked(_: int) -> None:
            return None

        self.get = unmarked  # type: ignore[method-assign, assignment]
        try:
            return await lock(self, ledger_id, worker)
        finally:
            self.get = get  # type: ignore[method-assign]

    patch(UnderreplicationManager, "lock_unmarked", careless)
