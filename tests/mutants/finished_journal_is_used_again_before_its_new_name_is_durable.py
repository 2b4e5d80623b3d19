"""A journal file is reused before its directory is synced, so a power cut may bring back its old name with new content."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/journal/test_journal_files.py::test_a_crash_at_any_step_of_using_files_again_loses_no_group_and_brings_none_back",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.journal_files import JournalFiles

    retire = JournalFiles.retire

    class Unsynced:
        def __init__(self, disk: object) -> None:
            self.disk = disk

        def __getattr__(self, name: str) -> object:
            return getattr(self.disk, name)

        def sync_directory(self, path: str) -> None:
            return

    def retire_unsynced(self: JournalFiles, before: int, number: int) -> None:
        disk = self._disk
        self._disk = Unsynced(disk)  # type: ignore[assignment]
        try:
            retire(self, before, number)
        finally:
            self._disk = disk

    patch(JournalFiles, "retire", retire_unsynced)
