"""Placement takes a bookie that this process never saw registered for a machine of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.client.cluster_placement import ClusterPlacement
from triplicate.metadata import BookieServiceInfo

TESTS = [
    "tests/unit/client/test_cluster_placement.py::test_a_bookie_that_this_client_never_saw_registered_still_has_its_machine",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(placement: ClusterPlacement, bookie_ids: Iterable[str]) -> dict[str, BookieServiceInfo]:
        return {}

    patch(ClusterPlacement, "_recorded", nothing)
