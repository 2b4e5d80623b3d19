"""A writer takes its copies for complete, although a bookie was replaced before it had acknowledged every confirmed entry."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/ledger/test_write_tracker.py::test_copies_are_not_complete_once_a_bookie_was_replaced_without_a_confirmed_entry"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.write_tracker import WriteTracker

    def forget(self: WriteTracker, position: int) -> None:
        self._acked[position] = self.last_add_confirmed
        self._ahead[position].clear()

    patch(WriteTracker, "_restart", forget)
