"""A lookup searches runs oldest first, so an entry that was written twice is read in its old form."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_request_processor_v2.py::test_the_second_write_of_an_entry_is_acknowledged_and_the_newest_copy_is_read",
    "tests/unit/bookie/storage/test_index.py::test_overlapping_runs_come_newest_first",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.entry_log_format import BlockInfo
    from triplicate.bookie.storage.index import Index
    from triplicate.bookie.storage.run_cache import RunCache

    runs_holding, holding = Index.runs_holding, RunCache.holding

    def oldest_first(runs: list[tuple[int, BlockInfo]]) -> list[tuple[int, BlockInfo]]:
        return sorted(runs, key=lambda place: (place[1].flush_number, place[0], place[1].offset))

    patch(Index, "runs_holding", lambda self, ledger_id, entry_id: oldest_first(runs_holding(self, ledger_id, entry_id)))
    patch(RunCache, "holding", lambda self, ledger_id, entry_id: oldest_first(holding(self, ledger_id, entry_id)))
