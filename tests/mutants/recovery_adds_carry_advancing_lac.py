"""Recovery's copies claim entries as confirmed which are so only in ensembles that the metadata does not name yet."""

from collections.abc import Callable

from triplicate.ledger.recovery import Recovery, RecoveryAdd

TESTS = [
    "tests/unit/ledger/test_recovery.py::test_copies_carry_the_last_add_confirmed_that_was_found",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: Recovery, bookie_id: str, entry_id: int) -> None:
        tracker = self._tracker
        assert tracker is not None
        if bookie_id not in self._failed:
            found = self._unconfirmed[entry_id]
            self._commands.append(RecoveryAdd(entry_id, bookie_id, tracker.last_add_confirmed, found.length, found.payload))

    patch(Recovery, "_send", broken)
