"""A replication worker holds a writer to be gone after a look that no bookie answered."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.autorecovery import open_ledger_view

TESTS = [
    "tests/unit/autorecovery/test_worker.py::test_a_writer_whose_entries_no_bookie_shows_is_not_fenced",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def always(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return True

    patch(open_ledger_view, "is_covered", always)
