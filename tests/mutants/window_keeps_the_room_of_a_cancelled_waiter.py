"""A waiter that is cancelled after it was granted room keeps the room."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import window

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_waiter_that_is_cancelled_after_it_was_granted_room_gives_the_room_to_the_next",
    "tests/property/test_window.py::test_room_is_granted_in_order_within_the_limits_and_none_is_lost",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(window._Admission, "is_granted", property(lambda self: False))
