"""A journal that does not run yet: its mark, its replay, and the step to a running one. Everything blocks; a worker uses it at start."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, check_owner, decode_file_header
from triplicate.bookie.core.journal_format import (
    ALIGNMENT,
    GROUP_MAGIC,
    REUSED_KEY,
    GroupPosition,
    GroupScanner,
    JournalGroup,
)
from triplicate.bookie.core.journal_mark import JournalMark
from triplicate.bookie.core.journal_replay import (
    Event,
    FileEnded,
    GroupRead,
    GroupRewritten,
    HeaderUnreadable,
    JournalReplay,
    ReadFile,
    ReplayFinished,
)
from triplicate.bookie.files import NO_SPACE
from triplicate.bookie.journal.group_writer import GroupWriter
from triplicate.bookie.journal.journal_files import JournalFiles
from triplicate.bookie.journal.mark_file import MarkFile
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, File


@dataclass(frozen=True, slots=True)
class JournalLimits:
    """Sizes of a journal; see the settings of the same names in `BookieSettings`, without `journal_`."""

    preallocate_bytes: int
    file_bytes: int
    group_bytes: int
    spare_files: int = 0

    @classmethod
    def of(cls, settings: BookieSettings) -> JournalLimits:
        """The sizes that the settings give."""
        return cls(
            settings.journal_preallocate_bytes, settings.journal_file_bytes, settings.journal_group_bytes, settings.journal_spare_files
        )


@dataclass(frozen=True, slots=True)
class OpenJournal:
    """A replayed journal with its files, ready to run."""

    directory: str
    mark: MarkFile
    files: JournalFiles
    writer: GroupWriter
    replayed: ReplayFinished
    synced: GroupPosition
    """End of the newest durable group, or the beginning of the new file."""
    resumes: bool
    """Whether the journal outlives a full disk."""
    full: bool
    """There was no space for a new file; the first group tries again."""


class ClosedJournal:
    """See the module's text.

    Args:
        directory: holds the files and the mark.
        identity: goes into the header of every file.
    """

    def __init__(self, disk: Disk, directory: str, identity: FileIdentity, limits: JournalLimits) -> None:
        self.directory = directory
        self._disk = disk
        self._identity = identity
        self._limits = limits
        self._mark = MarkFile(disk, directory)
        self._files = JournalFiles(
            disk,
            directory,
            identity,
            preallocate_bytes=limits.preallocate_bytes,
            file_bytes=limits.file_bytes,
            spares_max=limits.spare_files,
        )
        self.replayed = ReplayFinished(None, 0, None)
        """The result of `replay`, once it has ended."""

    def read_mark(self) -> JournalMark | None:
        """The stored mark, or None when there is none. Raises CorruptionError, FormatError, OSError."""
        return self._mark.read()

    def replay(self, mark: JournalMark | None) -> Iterator[JournalGroup]:
        """Every group behind the mark, in order, over all files. `open` may follow after the last.

        Raises:
            CorruptionError: a group, or a file, between others is damaged or missing. FormatError: from a newer release.
        """
        paths = self._files.journals()
        machine = JournalReplay(self.directory, mark, paths)
        command = machine.begin()
        while not isinstance(command, ReplayFinished):
            event: Event
            if isinstance(command, ReadFile):
                event = yield from self._read_file(machine, command, paths[command.number])
            else:
                self._write_again(paths[command.group.file_number], command.group)
                event = GroupRewritten()
            following = machine.step(event)
            assert following is not None, "a file's end leads on"
            command = following
        self.replayed = command

    def _read_file(self, machine: JournalReplay, command: ReadFile, path: str) -> Generator[JournalGroup, None, Event]:
        number = command.number
        file = self._disk.open(path, readonly=True)
        try:
            size = file.size()
            header = file.pread(HEADER_BYTES, 0)
            try:
                identity = decode_file_header(header, JOURNAL_MAGIC, path)
            except CorruptionError as error:
                return HeaderUnreadable(path, error, self._holds_group(file, size, path, number))
            check_owner(identity, self._identity, number, JOURNAL_MAGIC, path)
            reused = identity.extra.get(REUSED_KEY) is True
            scanner = GroupScanner(file.pread, size, path, number, after=command.after, reused=reused)
            for group in scanner.groups(command.after_sequence, command.start):
                machine.step(GroupRead(group))
                yield group
            return FileEnded(scanner.torn)
        finally:
            file.close()

    def _holds_group(self, file: File, size: int, path: str, number: int) -> bool:
        scanner = GroupScanner(file.pread, size, path, number)
        return any(
            file.pread(len(GROUP_MAGIC), offset) == GROUP_MAGIC and scanner.is_group(offset)
            for offset in range(HEADER_BYTES, size, ALIGNMENT)
        )

    def _write_again(self, path: str, group: JournalGroup) -> None:
        file = self._disk.open(path)
        try:
            size = group.end.offset - group.offset
            file.pwrite([file.pread(size, group.offset)], group.offset)
            file.sync()
        finally:
            file.close()

    def open(self, *, resumes: bool) -> OpenJournal:
        """Start a new file behind all that exist.

        Args:
            resumes: whether the journal outlives a full disk. Then a lack of space for the file is left to the first group, unless
                neither a mark nor a group says where the journal ends.

        Raises:
            OSError: the file cannot be made.
        """
        limits, end, files = self._limits, self.replayed.end, self._files
        sequence = end.sequence if end is not None else 0
        # Spares count: the groups that they hold have numbers too.
        number = max(files.highest_number(), end.file_number if end is not None else 0)
        writer = GroupWriter(
            files, group_bytes=limits.group_bytes, preallocate_bytes=limits.preallocate_bytes, number=number, sequence=sequence
        )
        full = False
        try:
            files.open(number)
            writer.start()
        except OSError as error:
            if error.errno not in NO_SPACE or end is None or not resumes:
                raise
            synced, full = end, True
        else:
            synced = GroupPosition(writer.number, HEADER_BYTES, sequence)
        return OpenJournal(self.directory, self._mark, files, writer, self.replayed, synced, resumes, full)
