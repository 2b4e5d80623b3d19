"""Only recovery's first read fences, so a bookie whose fence was lost continues to accept adds (BookKeeper issue 2614)."""

from collections.abc import Callable

from triplicate.client import ledger_recovery

TESTS = [
    "tests/unit/client/test_ledger_recovery.py::test_every_read_of_a_recovery_fences",
    "tests/simulation/test_schedules.py::test_a_recovery_whose_first_fence_was_lost_fences_with_every_read",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ledger_recovery._Attempt, "must_fence", lambda self, entry_id: entry_id == -1)
