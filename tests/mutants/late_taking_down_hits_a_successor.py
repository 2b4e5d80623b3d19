"""A lost leader's election node is deleted by version alone, and the successor's node has version 0 too."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import TreeOperation
from triplicate.replica import Election

TESTS = [
    "tests/unit/replica/test_election.py::test_the_sign_of_a_successor_stays_where_another_takes_the_old_one_down_late[silent]",
    "tests/unit/replica/test_election.py::test_the_sign_of_a_successor_stays_where_another_takes_the_old_one_down_late[ended]",
    "tests/unit/replica/test_election.py::test_a_leader_that_has_reported_since_it_was_found_silent_stays",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def none(self: Election, node_id: str) -> list[TreeOperation]:
        return []

    patch(Election, "_guard_of", none)
