"""Targets are named although another worker has replaced another bookie of the segment meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from triplicate.autorecovery import ledger_repair
from triplicate.autorecovery.core.fragments import LedgerFragment, with_copies_moved
from triplicate.ledger import LedgerMetadata

TESTS = [
    "tests/unit/autorecovery/test_misplaced_pass.py::test_a_change_of_the_segment_meanwhile_is_not_undone_and_planned_again",
    "tests/unit/autorecovery/test_ledger_repair_rearranged.py::test_a_bookie_chosen_beside_others_is_not_named_beside_their_successors",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def careless(
        metadata: LedgerMetadata, moves: Sequence[tuple[LedgerFragment, str]], *, has_writer: bool = True
    ) -> LedgerMetadata | None:
        present = {segment.first_entry_id: segment.ensemble for segment in metadata.segments}
        as_now = [
            (replace(fragment, ensemble=present.get(fragment.first_entry_id, fragment.ensemble)), target) for fragment, target in moves
        ]
        return with_copies_moved(metadata, as_now, has_writer=has_writer)

    patch(ledger_repair, "with_copies_moved", careless)
