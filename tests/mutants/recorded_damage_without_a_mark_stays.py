"""Neither a worker that deletes a mark nor the auditor looks whether damaged copies of the ledger are recorded."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import auditor, worker
from triplicate.client import Client

TESTS = [
    "tests/unit/autorecovery/test_ledger_repair_damaged_copies.py::test_damage_recorded_while_its_mark_is_deleted_is_marked_again",
    "tests/unit/autorecovery/test_auditor.py::test_the_search_marks_ledgers_whose_recorded_damage_has_lost_its_mark",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(client: Client, ledger_id: int) -> bool:
        return False

    patch(worker, "mark_recorded_damage", nothing)
    patch(auditor, "mark_recorded_damage", nothing)
