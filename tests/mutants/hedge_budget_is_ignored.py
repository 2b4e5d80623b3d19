"""Every late read is sent to another replica, at any share of all reads."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger.hedging import HedgeBudget

TESTS = [
    "tests/unit/client/test_hedged_reads.py::test_the_budget_bounds_the_additional_reads[0.05]",
    "tests/unit/ledger/test_hedging.py::test_additional_reads_are_a_share_of_the_reads_in_any_window[0]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(HedgeBudget, "try_spend", lambda self: True)
