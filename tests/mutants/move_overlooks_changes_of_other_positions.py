"""A move is written although another worker has replaced another bookie of the segment meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.autorecovery import ledger_repair
from triplicate.autorecovery.core.fragments import LedgerFragment, with_copies_moved
from triplicate.ledger import LedgerMetadata

TESTS = [
    "tests/unit/autorecovery/test_misplaced_pass.py::test_a_change_of_the_segment_meanwhile_is_not_undone_and_planned_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def careless(
        metadata: LedgerMetadata, moves: Sequence[tuple[LedgerFragment, str]], *, has_writer: bool = True, whole_ensemble: bool = False
    ) -> LedgerMetadata | None:
        return with_copies_moved(metadata, moves, has_writer=has_writer)

    patch(ledger_repair, "with_copies_moved", careless)
