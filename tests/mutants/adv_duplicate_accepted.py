"""An entry id that is already confirmed can be appended a second time."""

from collections.abc import Callable

from triplicate.ledger import AdvWriteTracker

TESTS = [
    "tests/unit/ledger/test_adv_tracker.py::test_an_id_is_taken_once_it_was_pushed",
    "tests/unit/client/write/test_adv_writer.py::test_an_id_is_accepted_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(AdvWriteTracker, "is_taken", lambda self, entry_id: entry_id in self._pending)
