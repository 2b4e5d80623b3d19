"""A decommission neither moves nor keeps the copies of ledgers that can be undeleted."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.autorecovery import decommission
from triplicate.autorecovery.trashed_ledgers import LeavingTrash
from triplicate.client import Client

TESTS = [
    "tests/unit/autorecovery/test_decommission_of_trashed_ledgers.py::test_a_ledger_can_be_read_after_its_undelete",
    "tests/unit/autorecovery/test_decommission_of_trashed_ledgers.py::test_a_ledger_that_was_open_keeps_a_copy_of_each_entry",
    "tests/unit/autorecovery/test_decommission_of_trashed_ledgers.py::test_too_few_bookies_for_the_trash_refuse_the_decommission",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(client: Client, leaving: Collection[str]) -> LeavingTrash:
        return LeavingTrash((), (), ())

    patch(decommission, "leaving_trash", nothing)
