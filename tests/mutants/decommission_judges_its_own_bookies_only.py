"""A decommission overlooks that ledgers need bookies in the places of those that other decommissions move out."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.read_only_requests import ReadOnlyRequests

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_of_two_decommissions_at_a_time_one_is_refused_where_both_would_leave_too_few",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def leaving(requests: ReadOnlyRequests) -> list[str]:
        return []

    patch(ReadOnlyRequests, "leaving", leaving)
