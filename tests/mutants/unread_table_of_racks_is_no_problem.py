"""A table of racks that could not be read counts as empty, without a problem."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.cluster_placement import ClusterPlacement

TESTS = ["tests/unit/client/test_cluster_placement.py::test_a_table_that_was_never_read_is_a_problem_until_it_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    read = ClusterPlacement._read_table

    async def silent(placement: ClusterPlacement) -> None:
        await read(placement)
        placement._table_failure = ""

    patch(ClusterPlacement, "_read_table", silent)
