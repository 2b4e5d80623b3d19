"""The pause of a follower grows with the duration of an application, without a bound."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/replica/core/test_apply_pacing.py::test_each_entry_is_applied_once_in_order_and_within_the_bound",
    "tests/unit/replica/core/test_apply_pacing.py::test_a_clock_that_was_set_back_delays_by_the_bound_at_most",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.apply_pacing import INTERVAL_FACTOR, ApplyPacing

    def applied(self: ApplyPacing, began: float, ended: float, *, is_behind: bool) -> None:
        self._next_at = began + INTERVAL_FACTOR * (ended - began)

    patch(ApplyPacing, "wait_s", lambda self, now: max(0.0, self._next_at - now))
    patch(ApplyPacing, "applied", applied)
