"""A candidate does not ask the bookies before it deposes a silent leader, so one that is cut off deposes a healthy one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import Election

TESTS = [
    "tests/unit/replica/test_election.py::test_a_candidate_that_could_not_lead_deposes_no_silent_leader",
    "tests/simulation/test_databases.py::test_a_follower_that_is_cut_off_and_reaches_the_metadata_deposes_nobody",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def could(self: Election) -> bool:
        return True

    patch(Election, "_could_take_over", could)
