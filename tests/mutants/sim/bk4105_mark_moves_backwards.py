"""The journal's mark is set back to the one before, whose journal files are gone (BookKeeper issue 4105)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("bookies",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupPosition
    from triplicate.bookie.core.journal_mark import encode_mark
    from triplicate.bookie.files import replace_file
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.mark_file import MARK_NAME

    write_mark = Journal.write_mark

    def and_back(self: Journal, position: GroupPosition, flush_number: int) -> None:
        before = self.read_mark()
        write_mark(self, position, flush_number)
        if before is not None and flush_number % 4 == 0:
            replace_file(self._disk, self.directory, MARK_NAME, encode_mark(before))

    patch(Journal, "write_mark", and_back)
