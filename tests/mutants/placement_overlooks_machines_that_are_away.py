"""A client to which all bookies are on one machine does not look for bookies that are away and were on another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplicate.client.cluster_placement import ClusterPlacement
from triplicate.metadata import BookieServiceInfo

TESTS = [
    "tests/unit/client/test_cluster_placement.py::test_copies_share_a_machine_only_if_no_bookie_that_is_away_is_on_another_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(placement: ClusterPlacement, known: Mapping[str, BookieServiceInfo], machine: str) -> dict[str, BookieServiceInfo]:
        return {}

    patch(ClusterPlacement, "_away_elsewhere", nothing)
