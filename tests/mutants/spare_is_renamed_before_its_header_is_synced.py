"""A spare journal file is renamed before its new header is durable, so after a power cut name and header disagree."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/journal/test_journal_files.py::test_a_crash_at_any_step_of_using_files_again_loses_no_group_and_brings_none_back",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_machine import NextFile
    from triplicate.bookie.journal.journal_files import JournalFiles
    from triplicate.runtime import File

    begin, take_over = JournalFiles._begin, JournalFiles._take_over

    class Unsynced:
        def __init__(self, file: File) -> None:
            self.pwrite = file.pwrite

        def sync(self) -> None:
            return

    def begin_unsynced(self: JournalFiles, file: File, number: int, *, held: bool) -> None:
        begin(self, Unsynced(file), number, held=held)  # type: ignore[arg-type]

    def sync_behind(self: JournalFiles, spare: str, number: int, *, held: bool) -> NextFile:
        chosen = take_over(self, spare, number, held=held)
        file = self._disk.open(chosen.path)
        file.sync()
        file.close()
        return chosen

    patch(JournalFiles, "_begin", begin_unsynced)
    patch(JournalFiles, "_take_over", sync_behind)
