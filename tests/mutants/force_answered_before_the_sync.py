"""The bookie answers a force after the write and before the sync."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_add_processor_deferred_sync.py::test_a_deferred_add_is_acknowledged_before_the_sync_and_a_force_is_not",
    "tests/unit/bookie/server/test_add_processor_deferred_sync.py::test_a_power_loss_takes_only_what_no_acknowledged_force_covers",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    written = Journal._written

    def answer_forces_too(self: Journal, items: list[JournalItem]) -> None:
        written(self, items)
        for item in items:
            if item.kind is None and item.then is not None:
                item.then(True)
                item.then = None

    patch(Journal, "_written", answer_forces_too)
