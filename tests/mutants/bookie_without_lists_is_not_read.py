"""A bookie that gives no lists of entries is held to have all of them, and none of its copies is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.autorecovery import entry_finder
from triplicate.autorecovery.core.fragments import LedgerFragment

TESTS = [
    "tests/unit/autorecovery/test_entry_finder.py::test_a_target_without_lists_that_forgets_an_entry_is_found_out",
    "tests/unit/autorecovery/test_entry_finder.py::test_a_present_bookie_without_lists_gets_damaged_and_missing_entries_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def broken(finder: entry_finder.EntryFinder, bookie_id: str, fragments: Sequence[LedgerFragment]) -> entry_finder.StoredEntries:
        expected = sorted(entry_id for fragment in fragments for run in fragment.runs() for entry_id in run)
        return entry_finder.StoredEntries(entry_finder.availability_of(expected), was_read=True)

    patch(entry_finder.EntryFinder, "_read", broken)
