"""A running bookie treats the failed sync of a spare journal file as a lack of space, and continues."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_failures.py::test_only_a_stopping_bookie_survives_the_failed_sync_of_an_unfinished_spare"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.files import join
    from triplicate.bookie.journal.journal_files import PREPARED_NAME, JournalFiles

    def give_up(self: JournalFiles, error: OSError) -> bool:
        self._delete([join(self.directory, PREPARED_NAME)])
        return False

    patch(JournalFiles, "_give_up", give_up)
