"""A worker takes a mark without bookies for done, and moves nothing."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.ledger_repair import RepairRun
from triplicate.autorecovery.repair_tools import BookieStates
from triplicate.metadata import Versioned

TESTS = [
    "tests/unit/autorecovery/test_misplaced_pass.py::test_a_worker_moves_what_a_mark_without_bookies_is_about[sizes0]",
    "tests/unit/autorecovery/test_misplaced_pass.py::test_a_pass_by_hand_moves_the_copies_of_all_misplaced_ledgers",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(self: RepairRun, found: Versioned, states: BookieStates) -> bool:
        return False

    patch(RepairRun, "_move_misplaced", nothing)
