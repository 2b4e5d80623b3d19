"""A forked worker uses its parent's client, whose threads do not exist in the child."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.cluster import connections

TESTS = ["tests/unit/spark/cluster/test_connections.py::test_a_forked_process_opens_its_own_client_and_leaves_the_parents_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    kept = connections._process_connections
    patch(connections, "_connections", lambda: kept)
