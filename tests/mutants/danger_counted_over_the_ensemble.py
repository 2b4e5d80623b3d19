"""The loss of an ack quorum is judged by the absent bookies of the whole ensemble instead of each write set."""

from collections.abc import Callable, Collection

from triplicate.ledger import schedule, write_tracker

TESTS = [
    "tests/unit/ledger/test_write_tracker.py::test_ack_quorums_are_in_danger_when_too_many_of_one_write_set_are_absent",
    "tests/unit/client/write/test_ensemble_changer_absent_bookies.py::test_a_delayed_change_of_a_striped_ledger_counts_per_write_set",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(absent: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return len(absent) > write_quorum - ack_quorum

    patch(schedule, "is_endangered", broken)
    patch(write_tracker, "is_endangered", broken)
