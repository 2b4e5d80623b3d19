"""A worker takes a bookie that is being decommissioned for one that keeps its ledgers, and deletes the mark."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.read_only_requests import ReadOnlyRequests

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_other_workers_of_the_cluster_move_the_ledgers_of_a_leaving_bookie",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def leaving(requests: ReadOnlyRequests) -> list[str]:
        return []

    patch(ReadOnlyRequests, "leaving", leaving)
