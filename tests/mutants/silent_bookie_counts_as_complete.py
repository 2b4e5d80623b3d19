"""A bookie that did not answer does not keep a ledger from counting as complete."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import LedgerCopies

TESTS = [
    "tests/unit/autorecovery/core/test_ledger_copies.py::test_a_silent_bookie_proves_nothing",
    "tests/unit/autorecovery/test_ledger_check.py::test_a_silent_bookie_is_marked_only_if_it_is_not_registered",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def is_complete(copies: LedgerCopies) -> bool:
        return not any(one.needs_repair for one in copies.bookies)

    patch(LedgerCopies, "is_complete", property(is_complete))
