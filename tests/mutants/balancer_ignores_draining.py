"""The plan gives copies and leaders to nodes that are draining, and leaves those that they have."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/property/test_placement.py::test_a_drain_changes_the_databases_of_that_node_only",
    "tests/property/test_placement.py::test_leaders_move_to_copies_that_may_lead_and_stay_where_all_is_well",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.placement import PlacedNode

    patch(PlacedNode, "is_able", property(lambda self: self.is_registered))
    patch(PlacedNode, "keeps", property(lambda self: not self.is_gone))
