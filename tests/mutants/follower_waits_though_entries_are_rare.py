"""A follower waits before each application, also where the last one was long ago."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/replica/core/test_apply_pacing.py::test_an_entry_that_arrives_after_a_pause_is_applied_at_once",
    "tests/unit/replica/core/test_apply_pacing.py::test_the_first_entry_does_not_wait",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.apply_pacing import INTERVAL_MAX_S, ApplyPacing

    patch(ApplyPacing, "wait_s", lambda self, now: INTERVAL_MAX_S)
