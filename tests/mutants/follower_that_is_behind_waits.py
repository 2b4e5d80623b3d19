"""A follower pauses although further entries were ready, and falls behind a fast log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/replica/core/test_apply_pacing.py::test_each_entry_is_applied_once_in_order_and_within_the_bound",
    "tests/unit/replica/core/test_apply_pacing.py::test_a_follower_that_is_behind_does_not_wait",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.apply_pacing import ApplyPacing

    applied = ApplyPacing.applied
    patch(ApplyPacing, "applied", lambda self, began, ended, is_behind: applied(self, began, ended, is_behind=False))
