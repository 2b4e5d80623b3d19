"""Coverage is counted over the whole ensemble instead of in every write quorum, so a striped ledger cannot be recovered."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate import ledger
from triplicate.ledger import schedule

TESTS = [
    "tests/unit/ledger/test_schedule.py::test_coverage_of_a_striped_ledger_is_not_a_count_over_the_ensemble",
    "tests/unit/ledger/test_schedule.py::test_coverage_means_that_no_ack_quorum_can_hide",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def counted(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return len(unknown) < ack_quorum

    patch(schedule, "is_covered", counted)
    patch(ledger, "is_covered", counted)
