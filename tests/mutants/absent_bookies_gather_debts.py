"""A writer with ids of the caller's keeps every entry that an absent bookie misses, so its memory grows without bound."""

from collections.abc import Callable

from triplicate.ledger import AdvWriteTracker

TESTS = [
    "tests/unit/ledger/test_adv_tracker.py::test_an_absent_bookie_does_not_gather_debts_for_ever",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: AdvWriteTracker) -> int:
        while not self.changing and not self.is_held_back and self._has_ack_quorum(self.last_add_confirmed + 1):
            self.last_add_confirmed += 1
            del self._pending[self.last_add_confirmed]
        return self.last_add_confirmed

    patch(AdvWriteTracker, "advance", broken)
