"""An absent bookie's acknowledgement counts towards an entry that the writer did not send it."""

from collections.abc import Callable

from triplicate.ledger import WriteTracker

TESTS = [
    "tests/unit/ledger/test_write_tracker.py::test_an_absent_bookie_keeps_what_it_acknowledged_and_adds_nothing",
    "tests/property/test_write_tracker.py::test_the_tracker_confirms_exactly_what_the_model_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    suspend = WriteTracker.suspend

    def broken(self: WriteTracker, bookie_id: str) -> None:
        before = dict(self._positions)
        suspend(self, bookie_id)
        self._positions = before

    patch(WriteTracker, "suspend", broken)
