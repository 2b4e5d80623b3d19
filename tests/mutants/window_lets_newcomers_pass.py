"""An append that finds room is admitted though others wait for room before it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_newcomer_queues_behind_a_waiter_that_was_granted_room_and_has_not_resumed",
    "tests/property/test_window.py::test_room_is_granted_in_order_within_the_limits_and_none_is_lost",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(AdmissionWindow, "try_admit", AdmissionWindow.try_occupy)
