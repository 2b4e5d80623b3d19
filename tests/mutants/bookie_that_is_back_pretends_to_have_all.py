"""A bookie that rejoins the ensemble counts for every entry that was pushed while it was absent."""

from collections.abc import Callable

from triplicate.ledger import WriteTracker

TESTS = [
    "tests/unit/ledger/test_write_tracker.py::test_a_bookie_that_comes_back_begins_behind_the_last_add_confirmed",
    "tests/property/test_recovery.py::test_recovery_keeps_every_acknowledged_entry",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    resume = WriteTracker.resume

    def broken(self: WriteTracker, position: int) -> list[int]:
        pending = resume(self, position)
        self._acked[position] = self.last_add_pushed
        return pending

    patch(WriteTracker, "resume", broken)
