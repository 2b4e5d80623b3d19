"""The decisions of a journal's replay: which files are read from where, what a damaged header means, and where the journal continues.

A machine without I/O. The shell carries out each command and steps the machine with the result::

    (begin) -> ReadFile -> GroupRead ... FileEnded | HeaderUnreadable -> ReadFile ... -> RewriteGroup? -> ReplayFinished

The newest group is the only one whose sync may not be done, since a group is written after the sync of the one before it. It is written
again before anything is built on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.journal_format import GroupPosition, JournalGroup, TornTail
from triplicate.bookie.core.journal_mark import JournalMark
from triplicate.errors import CorruptionError

# Commands.


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read the groups of a file in order.

    Args:
        start: offset of the first group.
        after_sequence: the first group's sequence is one above; None: it may have any.
        after: how the file before ended, if badly.
    """

    number: int
    start: int
    after_sequence: int | None
    after: TornTail | None


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Write this group, the newest, again in its place and sync it.

    A sync alone would do after the process was killed. It does not where the process ended because a sync had failed: the operating
    system reports that error once and takes the pages for written afterwards.
    """

    group: JournalGroup


@dataclass(frozen=True, slots=True)
class ReplayFinished:
    """All groups were read.

    Args:
        end: of the newest group, found or covered by the mark; None: there is neither.
        groups: how many were read.
        torn: the last torn tail.
    """

    end: GroupPosition | None
    groups: int
    torn: TornTail | None


Command = ReadFile | RewriteGroup | ReplayFinished

# Events.


@dataclass(frozen=True, slots=True)
class GroupRead:
    """The file's next group."""

    group: JournalGroup


@dataclass(frozen=True, slots=True)
class FileEnded:
    """All groups of the file were read. `torn`: bytes behind them are neither a group nor an end."""

    torn: TornTail | None


@dataclass(frozen=True, slots=True)
class HeaderUnreadable:
    """The file's header fails its checksum. `holds_group`: a whole group of the file's number stands in it."""

    path: str
    error: CorruptionError
    holds_group: bool


@dataclass(frozen=True, slots=True)
class GroupRewritten:
    """`RewriteGroup` is done, durably."""


Event = GroupRead | FileEnded | HeaderUnreadable | GroupRewritten


class JournalReplay:
    """Reads every group behind the mark, in order, over all files.

    Args:
        directory: for messages.
        mark: where replay begins; None (none was written, or an operator deleted a damaged one): at the first file.
        files: numbers of the journal files.

    Raises:
        CorruptionError: the file that the mark names is missing.
    """

    def __init__(self, directory: str, mark: JournalMark | None, files: Iterable[int]) -> None:
        numbers = sorted(files)
        if mark is not None and mark.file_number not in numbers:
            raise CorruptionError(
                f"{directory}: journal file {mark.file_number}, at which replay must begin, is missing: restore it, or replace this "
                "bookie's disks and let its peers copy the entries back"
            )
        self.end = GroupPosition(mark.file_number, mark.offset, mark.sequence) if mark is not None else None
        self.groups = 0
        self.torn: TornTail | None = None
        self._mark = mark
        self._files = deque(number for number in numbers if mark is None or number >= mark.file_number)
        self._newest: JournalGroup | None = None

    def begin(self) -> Command:
        """The first command."""
        return self._next_file(None)

    def step(self, event: Event) -> Command | None:
        """Process one event; returns the next command, or None while the current file goes on.

        Raises:
            CorruptionError: a file with groups has an unreadable header.
        """
        if isinstance(event, GroupRead):
            self._accept(event.group)
            return None
        if isinstance(event, FileEnded):
            self.torn = event.torn or self.torn
            return self._next_file(event.torn)
        if isinstance(event, HeaderUnreadable):
            if event.holds_group:
                raise event.error
            # The crash came before the sync of the header; no group is written before that.
            self.torn = TornTail(event.path, 0)
            return self._next_file(self.torn)
        return ReplayFinished(self.end, self.groups, self.torn)

    def _accept(self, group: JournalGroup) -> None:
        assert self.end is None or group.sequence == self.end.sequence + 1, "groups are read without a gap"
        self.end, self._newest = group.end, group
        self.groups += 1

    def _next_file(self, after: TornTail | None) -> Command:
        if not self._files:
            return RewriteGroup(self._newest) if self._newest is not None else ReplayFinished(self.end, self.groups, self.torn)
        number, mark = self._files.popleft(), self._mark
        start = mark.offset if mark is not None and number == mark.file_number else HEADER_BYTES
        return ReadFile(number, start, self.end.sequence if self.end is not None else None, after)
