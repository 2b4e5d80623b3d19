"""A position of a striped segment gets every entry of the segment instead of its own."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.core import fragments

TESTS = ["tests/property/test_fragments.py::test_fragments_hold_exactly_the_entries_that_lost_bookies_store"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(fragments.LedgerFragment, "runs", lambda fragment: iter([range(fragment.first_entry_id, fragment.last_entry_id + 1)]))
