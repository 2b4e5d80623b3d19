"""The bookie answers an add when it is given to the journal, not when it is synced."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/simulation/test_losses.py::test_acknowledged_entries_survive_a_power_loss_of_all_bookies"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    submit = Journal.submit

    def answer_at_once(self: Journal, item: JournalItem) -> None:
        submit(self, item)
        peer, item.peer = item.peer, None
        if peer is not None:
            peer.answer(item.answers)

    patch(Journal, "submit", answer_at_once)
