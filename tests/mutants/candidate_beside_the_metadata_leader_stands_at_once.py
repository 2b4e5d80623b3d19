"""A node on the machine of ZooKeeper's leader leads although another could, so one machine takes both leaders with it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import Tree
from triplicate.replica import election

TESTS = [
    "tests/unit/replica/test_election.py::test_a_candidate_beside_the_leader_of_the_metadata_service_lets_another_be_first",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def never(tree: Tree) -> bool:
        return False

    patch(election, "is_beside_leading_server", never)
