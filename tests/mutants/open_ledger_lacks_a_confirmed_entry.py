"""The worker deletes the mark of an open ledger whose bookie lacks confirmed entries, and copies none."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.ledger_repair import RepairRun
from triplicate.autorecovery.repair_tools import BookieStates
from triplicate.ledger import LedgerMetadata

TESTS = [
    "tests/unit/autorecovery/test_worker_open_ledgers.py::test_a_confirmed_entry_that_a_present_bookie_lacks_is_copied_while_the_ledger_is_open",
    "tests/unit/autorecovery/test_worker_open_ledgers.py::test_a_read_only_bookie_that_lacks_an_entry_of_an_open_ledger_is_replaced_by_a_recovery",
    "tests/unit/autorecovery/test_worker_open_ledgers.py::test_an_open_ledger_on_a_bookie_of_unknown_address_stays_marked",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(run: RepairRun, metadata: LedgerMetadata, states: BookieStates) -> list[str]:
        return []

    patch(RepairRun, "_complete_open", nothing)
