"""A waiter that withdraws leaves those behind it waiting until something is released."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow
from triplicate.runtime.window import RoomWaiter

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_waiter_that_is_cancelled_leaves_the_line_to_those_behind_it",
    "tests/property/test_window.py::test_room_is_granted_in_order_within_the_limits_and_none_is_lost",
    "tests/unit/client/write/test_ledger_writer.py::test_an_append_that_is_cancelled_in_the_queue_makes_way_for_the_next",
    "tests/unit/client/write/test_adv_writer.py::test_an_append_that_is_cancelled_in_the_queue_makes_way_for_the_next",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def remove(self: AdmissionWindow, waiter: RoomWaiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    patch(AdmissionWindow, "withdraw", remove)
