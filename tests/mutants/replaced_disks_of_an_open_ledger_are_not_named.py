"""A repair that waits for an open ledger does not name the bookies whose replaced disks may have confirmed entries alone."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_bookie_refill_real_bookies.py::test_two_bookies_that_may_have_confirmed_entries_alone_are_named",
    "tests/unit/autorecovery/test_bookie_refill_real_bookies.py::test_replaced_disks_are_named_for_a_ledger_without_a_writer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_repair

    async def nothing(*_: object) -> str:
        return ""

    patch(ledger_repair, "doubt_of_replaced_disks", nothing)
