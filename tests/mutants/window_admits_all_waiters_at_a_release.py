"""Every release admits all waiters, whether or not there is room for them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_waiter_of_several_parts_occupies_room_as_it_is_found_and_lets_nothing_between",
    "tests/property/test_window.py::test_room_is_granted_in_order_within_the_limits_and_none_is_lost",
    "tests/unit/client/write/test_ledger_writer.py::test_appends_wait_first_come_first_served",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def occupy(self: AdmissionWindow, entries: int, size_bytes: int) -> bool:
        self.occupy(entries, size_bytes)
        return True

    patch(AdmissionWindow, "try_occupy", occupy)
