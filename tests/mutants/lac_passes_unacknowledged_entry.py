"""The last-add-confirmed jumps to the greatest acknowledged entry, over one before it that lacks its quorum."""

from collections.abc import Callable

from triplicate.ledger import WriteTracker

TESTS = [
    "tests/unit/ledger/test_write_tracker.py::test_a_later_entry_waits_for_all_before_it",
    "tests/property/test_write_tracker.py::test_the_tracker_confirms_exactly_what_the_model_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: WriteTracker) -> int:
        quorate = [e for e in range(self.last_add_confirmed + 1, self.last_add_pushed + 1) if self._has_ack_quorum(e)]
        return max(quorate, default=self.last_add_confirmed)

    patch(WriteTracker, "_confirmed_prefix", broken)
