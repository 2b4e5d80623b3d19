"""A lookup asks runs oldest first, so an entry that was written again reads as it was before."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_server.py::test_the_second_write_of_an_entry_is_acknowledged_and_the_newest_copy_is_read",
    "tests/unit/bookie/test_index.py::test_overlapping_runs_come_newest_first",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.entry_log import BlockInfo
    from triplicate.bookie.index import Index

    runs_holding = Index.runs_holding

    def oldest_first(self: Index, ledger_id: int, entry_id: int) -> list[tuple[int, BlockInfo]]:
        return runs_holding(self, ledger_id, entry_id)[::-1]

    patch(Index, "runs_holding", oldest_first)
