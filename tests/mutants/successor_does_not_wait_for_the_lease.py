"""A new leader serves while its predecessor may still answer reads under its lease."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import LeaseSuccession

TESTS = [
    "tests/unit/sql/engine/test_leadership_lease.py::test_a_successor_waits_for_the_lease_and_the_error_of_clocks_before_it_appends_or_answers",
    "tests/unit/sql/engine/test_leadership_lease.py::test_a_leadership_that_ended_while_it_waited_spares_the_next_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once(self: LeaseSuccession, epoch: int, since: float) -> None:
        return

    patch(LeaseSuccession, "outwait_predecessor", at_once)
