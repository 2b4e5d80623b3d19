"""A bookie refuses to list a ledger of which one run is damaged, also after its entries were stored again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.core.entry_log_format import consecutive
from triplicate.bookie.storage.ledger_storage import LedgerStorage

TESTS = [
    "tests/unit/bookie/storage/test_ledger_storage_damaged_runs.py::test_a_list_goes_on_past_a_damaged_run_and_has_what_was_stored_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def entry_ids(storage: LedgerStorage, ledger_id: int) -> list[range]:
        runs = storage.index.runs_of(ledger_id)
        return [ids for log, run in runs for ids in consecutive(storage.reader.ids(log, run))]

    patch(LedgerStorage, "entry_ids", entry_ids)
