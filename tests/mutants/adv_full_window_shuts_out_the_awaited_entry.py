"""The entry that all others wait for is not admitted while those others fill the window, so the writer deadlocks."""

from collections.abc import Callable

from triplicate.client import AdvLedgerWriter

TESTS = [
    "tests/unit/client/write/test_adv_writer.py::test_the_entry_that_all_wait_for_is_let_into_a_full_window",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(AdvLedgerWriter, "_is_awaited", lambda self, entry_id: False)
