"""A deferred add that is written counts as synced, so a force that comes then finds nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_v3_deferred_sync.py::test_a_force_that_comes_between_write_and_sync_waits_for_the_sync"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal import Journal, JournalItem

    written, settled = Journal._written, Journal._settled

    def settle_at_once(self: Journal, items: list[JournalItem]) -> None:
        written(self, items)
        settled(self, [item for item in items if item.early])

    def settle_the_rest(self: Journal, items: list[JournalItem]) -> None:
        settled(self, [item for item in items if not item.early])

    patch(Journal, "_written", settle_at_once)
    patch(Journal, "_settled", settle_the_rest)
