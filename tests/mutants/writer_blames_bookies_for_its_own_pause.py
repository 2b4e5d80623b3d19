"""A writer that was stopped counts the time for which it stood still as time for which the bookies left it without an answer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.connection.bookie_channel import BookieChannel

TESTS = ["tests/unit/client/test_slow_bookies.py::test_a_writer_that_stood_still_does_not_blame_the_bookies"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = BookieChannel._arm_sweep

    def never_late(self: BookieChannel) -> None:
        real(self)
        self._sweep_late_at = float("inf")

    patch(BookieChannel, "_arm_sweep", never_late)
