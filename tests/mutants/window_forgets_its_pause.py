"""A writer sends more although a bookie owes as many answers as it may."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_paused_window_admits_nothing_until_it_goes_on",
    "tests/unit/client/write/test_ledger_writer_slow_bookies.py::test_room_at_one_of_two_slow_bookies_is_not_room",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(AdmissionWindow, "is_paused", property(lambda self: False, lambda self, paused: None))
