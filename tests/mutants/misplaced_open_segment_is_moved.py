"""The last segment of an open ledger is moved although its writer lives."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.core import misplaced_copies
from triplicate.autorecovery.core.fragments import bounded_segments
from triplicate.ledger import EnsembleSegment, LedgerMetadata

TESTS = [
    "tests/unit/autorecovery/core/test_misplaced_copies.py::test_the_last_segment_of_an_open_ledger_is_left_to_its_writer",
    "tests/unit/autorecovery/test_misplaced_pass.py::test_the_open_segment_of_a_living_writer_is_neither_moved_nor_fenced",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def all_segments(metadata: LedgerMetadata) -> list[tuple[EnsembleSegment, int]]:
        return bounded_segments(metadata, has_writer=False)

    patch(misplaced_copies, "bounded_segments", all_segments)
