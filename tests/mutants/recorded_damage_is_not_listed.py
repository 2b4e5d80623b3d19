"""The list of under-replicated ledgers leaves out recorded damage."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.damaged_copies import DamagedCopiesRecords

TESTS = [
    "tests/unit/cli/server_commands/test_cluster_recovery.py::test_recorded_damage_is_listed_with_bookies_and_numbers_of_entries",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(self: DamagedCopiesRecords, ledger_id: int) -> None:
        return None

    patch(DamagedCopiesRecords, "get", nothing)
