"""A read that timed out at a replica counts as its "no such entry"."""

from collections.abc import Callable

from triplicate.ledger import ReadPlan

TESTS = [
    "tests/unit/ledger/test_read_plan.py::test_a_failure_says_nothing_about_the_entry",
    "tests/property/test_recovery.py::test_recovery_keeps_every_acknowledged_entry",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ReadPlan, "failed", lambda self, bookie_id, reason: self.absent(bookie_id))
