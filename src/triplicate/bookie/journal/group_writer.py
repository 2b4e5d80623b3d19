"""The device-thread side of a journal: forms groups and places them in files, as `GroupFormer` decides."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.journal_format import END_BLOCK, GroupPosition, encode_group
from triplicate.bookie.core.journal_machine import (
    FileStarted,
    GroupDue,
    GroupFormer,
    GroupRefused,
    RemoveTail,
    StartFile,
    TailRemoved,
    WriteGroup,
)
from triplicate.bookie.journal.journal_files import JournalFiles
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.runtime import File, Group, fault_point


class GroupWriter:
    """Carries out the commands of `GroupFormer`. Used by the device's thread, and by no thread while there is no device.

    Args:
        number: highest file number in use.
        sequence: of the newest group.
    """

    def __init__(self, files: JournalFiles, *, group_bytes: int, preallocate_bytes: int, number: int, sequence: int) -> None:
        self._files = files
        self._former = GroupFormer(
            file_bytes=files.file_bytes,
            group_bytes=group_bytes,
            preallocate_bytes=preallocate_bytes,
            number=number,
            sequence=sequence,
        )
        self._file: File | None = None
        """The file used last; None: there is none, or it is closed for good."""

    @property
    def number(self) -> int:
        """Number of the current file."""
        return self._former.number

    def form(self, items: Sequence[JournalItem]) -> tuple[Group, int]:
        """Form a group of the first items; returns it and how many items it covers. Raises OSError."""
        former, files = self._former, self._files
        command = former.step(GroupDue(items, files.ready_after(former.number) is not None))
        while not isinstance(command, WriteGroup):
            if isinstance(command, RemoveTail):
                self._remove_tail(command.size_bytes)
                command = former.step(TailRemoved())
            else:
                assert isinstance(command, StartFile), "a due group leads to a write"
                command = former.step(self._start_file(command.after))
        return self._group(command, items), command.items

    def _group(self, command: WriteGroup, items: Sequence[JournalItem]) -> Group:
        file, end = self._file, command.end
        assert file is not None, "a group is written into a started file"
        if command.allocate is not None:
            file.allocate(command.allocate.offset, command.allocate.length)
        buffers: list[Buffer] = []
        for item in items[: command.items]:
            buffers += item.buffers
            item.end = end
        body = encode_group(command.kind, end.file_number, end.sequence, command.records, buffers)
        if command.end_block:
            body.append(END_BLOCK)
        return Group(file, command.offset, body, report_written=command.early)

    def start(self) -> None:
        """Start the first file ahead of the first group. Raises OSError."""
        self._former.step(self._start_file(self._former.number))

    def refuse(self, synced: GroupPosition) -> None:
        """The group formed last found no space: the next one goes to another file, numbered behind `synced`."""
        self._former.step(GroupRefused(synced))

    @fault_point("bookie.journal.cut")
    def _remove_tail(self, size_bytes: int) -> None:
        file = self._file
        assert file is not None, "a tail belongs to the file used last"
        file.truncate(size_bytes)
        file.sync()
        file.close()
        self._file = None

    @fault_point("bookie.journal.file")
    def _start_file(self, after: int) -> FileStarted:
        chosen, file = self._files.start_next(after)
        if self._file is not None:
            self._file.close()
        self._file = file
        return FileStarted(chosen)

    def close(self) -> None:
        """Close the file used last."""
        if self._file is not None:
            self._file.close()
            self._file = None
