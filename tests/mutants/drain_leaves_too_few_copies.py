"""A drain is accepted although too few nodes would be left."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_cluster_placement.py::test_a_drain_that_would_leave_too_few_copies_is_refused_and_nothing_is_changed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting import cluster_placement

    patch(cluster_placement, "shortages", lambda databases, nodes: [])
