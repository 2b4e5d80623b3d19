"""A ledger that was repaired on request counts as whole without a second check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.autorecovery import LedgerCopies, LedgerRepair, MendedLedger, ledger_mending

TESTS = [
    "tests/unit/autorecovery/test_ledger_mending.py::test_an_entry_without_a_good_copy_is_named_and_stays_marked",
    "tests/unit/autorecovery/test_ledger_mending.py::test_another_worker_that_has_locked_the_ledger_is_waited_for_and_named",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def mended(before: LedgerCopies, marked: tuple[str, ...], repair: LedgerRepair | None, after: LedgerCopies) -> MendedLedger:
        return MendedLedger(before, marked, repair, replace(after, bookies=(), without_copy=()))

    patch(ledger_mending, "MendedLedger", mended)
