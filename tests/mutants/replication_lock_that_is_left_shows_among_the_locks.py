"""A worker's list of locks shows its own lock whose release failed: a decommission waits for it as long as its session lives."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.underreplication import HeldLock, UnderreplicationManager

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_a_lock_whose_end_ran_out_of_attempts_is_deleted_by_the_next_search[release and list]",
    "tests/simulation/test_found_in_repairs.py::test_a_decommission_does_not_wait_for_its_own_lock",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = UnderreplicationManager.locks

    async def locks(self: UnderreplicationManager) -> frozenset[HeldLock]:
        left = dict(self._left)
        self._left.clear()
        try:
            return await honest(self)
        finally:
            self._left.update(left)

    patch(UnderreplicationManager, "locks", locks)
