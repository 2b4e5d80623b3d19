"""An entry that is larger than the whole window is never admitted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow

TESTS = [
    "tests/unit/runtime/test_window.py::test_an_entry_larger_than_the_window_is_admitted_alone",
    "tests/property/test_window.py::test_room_is_granted_in_order_within_the_limits_and_none_is_lost",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(AdmissionWindow, "is_empty", property(lambda self: False))
