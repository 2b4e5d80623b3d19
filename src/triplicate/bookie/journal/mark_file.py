"""The file that holds a journal's mark. Everything blocks."""

from __future__ import annotations

from triplicate.bookie.core.journal_mark import JournalMark, decode_mark, encode_mark
from triplicate.bookie.files import join, read_file, replace_file
from triplicate.runtime import Disk

MARK_NAME = "mark"


class MarkFile:
    """The mark of one journal directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def read(self) -> JournalMark | None:
        """The stored mark, or None when there is none. Raises CorruptionError, FormatError, OSError."""
        path = join(self._directory, MARK_NAME)
        return decode_mark(read_file(self._disk, path), path) if self._disk.exists(path) else None

    def advance(self, mark: JournalMark) -> bool:
        """Replace the stored mark, durably. Returns False, and changes nothing, if the stored one is further. Raises as `read`."""
        current = self.read()
        if current is not None and current.sequence > mark.sequence:
            return False
        replace_file(self._disk, self._directory, MARK_NAME, encode_mark(mark))
        return True
