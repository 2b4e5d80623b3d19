"""Coverage allows as many unanswered bookies as the ack quorum, so recovery may miss an acknowledged entry."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate import ledger
from triplicate.ledger import schedule

TESTS = [
    "tests/golden/test_protocol_vectors.py::test_coverage_is_counted_in_every_write_quorum",
    "tests/unit/ledger/test_schedule.py::test_coverage_means_that_no_ack_quorum_can_hide",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = schedule.is_covered

    def one_more(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return right(unknown, ensemble_size, write_quorum, ack_quorum + 1)

    patch(schedule, "is_covered", one_more)
    patch(ledger, "is_covered", one_more)
