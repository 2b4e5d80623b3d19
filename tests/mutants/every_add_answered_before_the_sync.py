"""The bookie answers all adds of a group before its sync if one of them may be deferred."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_add_processor_deferred_sync.py::test_a_deferred_add_is_acknowledged_before_the_sync_and_a_force_is_not"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    written = Journal._written

    def all_early(self: Journal, items: list[JournalItem]) -> None:
        for item in items:
            item.early = True
        written(self, items)

    patch(Journal, "_written", all_early)
