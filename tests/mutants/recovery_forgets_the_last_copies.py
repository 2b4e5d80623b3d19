"""A recovery that closed its ledger overlooks bookies that have not stored its copies."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger.recovery import Recovery

TESTS = [
    "tests/unit/client/test_ledger_recovery_marks.py::test_a_bookie_that_lacks_a_copy_is_marked",
    "tests/unit/client/test_ledger_recovery_marks.py::test_a_bookie_that_is_gone_is_marked",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def bookies_without_copies(recovery: Recovery) -> list[str]:
        return []

    patch(Recovery, "bookies_without_copies", bookies_without_copies)
