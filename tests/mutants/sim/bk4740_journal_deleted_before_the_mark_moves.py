"""A flush deletes the journal files behind the new mark before it writes the mark (BookKeeper issues 4105, 4740)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("bookies",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupPosition
    from triplicate.bookie.files import numbered_files
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_files import SUFFIX

    write_mark = Journal.write_mark

    def delete_first(self: Journal, position: GroupPosition, flush_number: int) -> None:
        for number, path in numbered_files(self._disk, self.directory, SUFFIX).items():
            if number < position.file_number:
                self._disk.delete(path)
        self._disk.sync_directory(self.directory)
        write_mark(self, position, flush_number)

    patch(Journal, "write_mark", delete_first)
