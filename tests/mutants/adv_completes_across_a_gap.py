"""Entries behind an id that was never appended are completed."""

from collections.abc import Callable

from triplicate.ledger import AdvWriteTracker

TESTS = [
    "tests/unit/ledger/test_adv_tracker.py::test_a_gap_holds_back_what_follows",
    "tests/property/test_adv_tracker.py::test_the_tracker_confirms_exactly_what_the_model_does",
    "tests/unit/client/write/test_adv_writer.py::test_a_gap_holds_back_what_follows",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: AdvWriteTracker) -> int:
        while not self.changing and self._pending:
            following = min(self._pending)
            if not self._has_ack_quorum(following):
                break
            self.last_add_confirmed = following
            del self._pending[following]
        return self.last_add_confirmed

    patch(AdvWriteTracker, "advance", broken)
