"""A start replays only the first of several journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import JournalGroup
    from triplicate.bookie.core.journal_mark import JournalMark
    from triplicate.bookie.journal.closed_journal import ClosedJournal

    replay = ClosedJournal.replay

    def replay_the_first(self: ClosedJournal, mark: JournalMark | None) -> Iterator[JournalGroup]:
        for group in replay(self, mark):
            if "-2" not in self.directory:
                yield group

    patch(ClosedJournal, "replay", replay_the_first)
