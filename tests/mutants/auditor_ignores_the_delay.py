"""The auditor marks the ledgers of a lost bookie at once, also if the bookie is only restarted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.core.lost_bookies import LostBookies

TESTS = [
    "tests/unit/autorecovery/core/test_lost_bookies.py::test_a_lost_bookie_is_due_after_the_delay",
    "tests/unit/autorecovery/test_auditor.py::test_a_bookie_that_returns_in_time_costs_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def due(lost: LostBookies, now: float, delay_s: float) -> tuple[str, ...]:
        return lost.waiting

    patch(LostBookies, "due", due)
