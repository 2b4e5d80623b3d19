"""An acknowledgement of a replaced bookie still counts for its former position in the ensemble."""

from collections.abc import Callable, Sequence

from triplicate.ledger import WriteTracker

TESTS = [
    "tests/unit/ledger/test_write_tracker.py::test_what_a_replaced_bookie_acknowledged_does_not_count",
    "tests/property/test_write_tracker.py::test_the_tracker_confirms_exactly_what_the_model_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    replace = WriteTracker.replace

    def broken(self: WriteTracker, ensemble: Sequence[str]) -> list[int]:
        before = dict(self._positions)
        changed = replace(self, ensemble)
        self._positions = {**before, **self._positions}
        return changed

    patch(WriteTracker, "replace", broken)
