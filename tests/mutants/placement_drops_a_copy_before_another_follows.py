"""A node deletes a copy as soon as other nodes were chosen, whether they have copies or not."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/replica/test_copy_departure.py::test_a_follower_that_is_not_chosen_waits_for_the_chosen_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import copy_departure

    patch(copy_departure, "may_leave", lambda node, expected, positions, position: node not in expected)
