"""A bookie runs without a journal: an entry is acknowledged when it is in memory (BookKeeper issues 2705, 2706, 2936)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupType
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    submit = Journal.submit

    def answer_at_once(self: Journal, item: JournalItem) -> None:
        if item.kind is not GroupType.ENTRIES or item.peer is None:
            submit(self, item)
        else:
            item.peer.answer(item.answers)

    patch(Journal, "submit", answer_at_once)
