"""A writer that was stopped counts the pause as time in which the bookies did not answer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.connection.sweep_timer import SweepTimer

TESTS = ["tests/unit/client/write/test_ledger_writer_slow_bookies.py::test_a_writer_that_stood_still_does_not_blame_the_bookies"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    arm = SweepTimer.arm

    def never_late(self: SweepTimer) -> None:
        arm(self)
        self._late_at = float("inf")

    patch(SweepTimer, "arm", never_late)
