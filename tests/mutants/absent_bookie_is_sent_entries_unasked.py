"""A bookie that failed is sent entries when its backoff is over, without a probe that shows whether it answers."""

from collections.abc import Callable

from triplicate.ledger.failed_bookies import FailedBookies

TESTS = [
    "tests/unit/client/write/test_ensemble_changer_absent_bookies.py::test_a_bookie_that_hangs_holds_up_nobody_a_second_time",
    "tests/property/test_ensemble_change.py::test_entries_are_confirmed_only_by_bookies_that_the_metadata_names",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: FailedBookies, bookie_id: str, now: float) -> bool:
        self[bookie_id].is_back = True
        return False

    patch(FailedBookies, "begin_probe", broken)
