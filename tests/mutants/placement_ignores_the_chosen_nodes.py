"""A node has a copy of a database for which other nodes were chosen."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_balancer.py::test_a_database_has_copies_on_the_chosen_nodes_and_on_no_other"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.placement import Placement

    patch(Placement, "assigns", lambda self, node, *, is_draining: True)
