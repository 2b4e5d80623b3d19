"""A bookie answers adds after their write and before their sync."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    submit = Journal.submit

    def answer_early(self: Journal, item: JournalItem) -> None:
        item.early = True
        submit(self, item)

    patch(Journal, "submit", answer_early)
