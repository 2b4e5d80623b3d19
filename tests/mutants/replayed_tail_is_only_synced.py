"""After a failed sync the next process only syncs the journal's newest group, which does not write it again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.core.journal_format import JournalGroup
from triplicate.bookie.journal.closed_journal import ClosedJournal

TESTS = ["tests/unit/bookie/test_bookie_failed_sync.py::test_a_journal_group_whose_sync_failed_is_written_again_before_the_next"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def sync_only(self: ClosedJournal, path: str, group: JournalGroup) -> None:
        file = self._disk.open(path)
        file.sync()
        file.close()

    patch(ClosedJournal, "_write_again", sync_only)
