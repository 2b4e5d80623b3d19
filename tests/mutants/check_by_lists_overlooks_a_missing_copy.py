"""The check of all replicas counts a bookie that answers as complete."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.autorecovery import LedgerCopies, ledger_audits

TESTS = ["tests/unit/autorecovery/test_ledger_audits.py::test_a_list_without_an_entry_in_the_middle_is_found_by_the_lists_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def lacking(copies: LedgerCopies, registered: Collection[str]) -> tuple[str, ...]:
        return tuple(one.bookie_id for one in copies.bookies if one.silence and one.bookie_id not in registered)

    patch(ledger_audits, "bookies_to_mark", lacking)
