"""A bookie that is being decommissioned counts as one that stays: a worker deletes its marks, and another decommission leaves too few."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.read_only_requests import ReadOnlyRequests

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_other_workers_of_the_cluster_move_the_ledgers_of_a_leaving_bookie",
    "tests/unit/autorecovery/test_decommission.py::test_of_two_decommissions_at_a_time_one_is_refused_where_both_would_leave_too_few",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def leaving(requests: ReadOnlyRequests) -> list[str]:
        return []

    patch(ReadOnlyRequests, "leaving", leaving)
