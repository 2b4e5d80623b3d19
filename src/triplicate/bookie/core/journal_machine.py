"""The decisions of a running journal: which items form a group, where the group goes, and what an error of the disk ends.

Two machines without I/O, one for each side of the journal. `GroupFormer` belongs to the device's thread and `GroupCommit` to the event
loop. The shell carries out each command and steps the machine with the result.

`GroupFormer` turns waiting items into one group::

    GroupDue -> RemoveTail? -> StartFile? -> WriteGroup
                TailRemoved    FileStarted

`GroupCommit` counts what is not synced yet. A group that finds no space is refused, and the journal resumes behind the newest synced
group, in another file (`ResumeBehind`, handed to the former as `GroupRefused`). Every other error ends the journal (`FailJournal`).

Invariants: a group's sequence is one above that of the group before it; no group is written while a refused group's tail may stand
in its file; a group begins at a multiple of `ALIGNMENT` and crosses the end of a file only as that file's first group; `synced` never
moves back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.journal_format import ALIGNMENT, GROUP_HEADER_BYTES, GroupPosition, GroupType, padded

ITEM_OVERHEAD_BYTES = 1024
"""Memory of a waiting item beside its bytes. An item that asks only for a sync has no bytes of its own."""
PREPARE_BEYOND = 16
"""A spare file is prepared when the current file is 1/16 full, so an idle bookie writes nothing."""


class QueuedItem(Protocol):
    """An item that waits for the journal, as the machine sees it."""

    kind: GroupType | None
    """None: nothing to write; everything submitted before is to be synced."""
    size_bytes: int
    count: int
    early: bool


@dataclass(frozen=True, slots=True)
class NextFile:
    """A journal file with a durable header and no group yet."""

    number: int
    path: str
    allocated: int
    stale_end: int
    """End of the bytes that the file's former use may have left behind its groups; 0 if there are none."""
    written: bool
    """Whether all of the file's blocks were written before."""


class Extent(NamedTuple):
    """A range of a file, in bytes."""

    offset: int
    length: int


# Events of `GroupFormer`.


class GroupDue(NamedTuple):
    """The device is idle and items wait. `file_ready`: a file made ready may follow the current one."""

    items: Sequence[QueuedItem]
    file_ready: bool


@dataclass(frozen=True, slots=True)
class TailRemoved:
    """`RemoveTail` is done, durably."""


@dataclass(frozen=True, slots=True)
class FileStarted:
    """`StartFile` is done."""

    file: NextFile


@dataclass(frozen=True, slots=True)
class GroupRefused:
    """A group found no space; the newest synced group ends at `synced`. How much of the refused group reached the disk is unknown."""

    synced: GroupPosition


FormerEvent = GroupDue | TailRemoved | FileStarted | GroupRefused

# Commands of `GroupFormer`.


@dataclass(frozen=True, slots=True)
class RemoveTail:
    """Truncate the current file to `size_bytes`, sync and close it: the next file's first group reuses a sequence."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class StartFile:
    """Open a file with a number above `after`, close the current one, and answer with `FileStarted`."""

    after: int


class WriteGroup(NamedTuple):
    """Write the first `items` waiting items as one group. A tuple, as are the other events and commands of every group, for speed."""

    items: int
    kind: GroupType
    records: int
    """Packets or records in the group's body."""
    offset: int
    end: GroupPosition
    allocate: Extent | None
    """Space to reserve before the write."""
    end_block: bool
    """Whether an `END_BLOCK` follows the group."""
    early: bool
    """Whether an item's answer may be sent after the write, before the sync."""


FormerCommand = RemoveTail | StartFile | WriteGroup


class _Plan(NamedTuple):
    """A group whose place is not decided yet."""

    items: int
    kind: GroupType
    records: int
    length: int
    early: bool


class GroupFormer:
    """Forms groups and places them in files. Used by one thread at a time.

    Args:
        file_bytes: size at which a file is full.
        group_bytes: bytes of items at which a group is full; a single larger item is a group of its own.
        preallocate_bytes: space reserved ahead of the groups.
        number: highest file number in use.
        sequence: of the newest group.
    """

    def __init__(self, *, file_bytes: int, group_bytes: int, preallocate_bytes: int, number: int, sequence: int) -> None:
        self.number = number
        """Of the current file, or of the one before while there is none."""
        self.sequence = sequence
        self._file_bytes = file_bytes
        self._group_bytes = group_bytes
        self._preallocate_bytes = preallocate_bytes
        self._file: NextFile | None = None
        """None: the next group begins a new file."""
        self._offset = 0
        self._allocated = 0
        self._tail: int | None = None
        """Where a refused group may have left bytes in the file used last."""
        self._plan: _Plan | None = None

    def step(self, event: FormerEvent) -> FormerCommand | None:
        """Process one event; returns the next command, or None when nothing is to be done now."""
        if isinstance(event, GroupDue):
            plan = self._plan_of(event.items)
            file = self._file
            if file is not None:
                fits = self._offset + plan.length <= self._file_bytes or self._offset == HEADER_BYTES
                # A file whose blocks were never written is given up for one whose blocks were.
                if fits and (file.written or not event.file_ready):
                    return self._write(plan, file)
            self._plan = plan
            return StartFile(self.number) if self._tail is None else RemoveTail(self._tail)
        if isinstance(event, FileStarted):
            return self._start(event.file)
        if isinstance(event, TailRemoved):
            assert self._tail is not None, "a tail is removed once"
            self._tail = None
            return StartFile(self.number)
        self._refuse(event.synced)
        return None

    def _plan_of(self, items: Sequence[QueuedItem]) -> _Plan:
        """The longest prefix of the items that fits one group: one kind, up to `group_bytes`, at least one item."""
        kind: GroupType | None = None
        size = count = taken = 0
        early = False
        for item in items:
            if item.kind is not None:
                if (kind is not None and item.kind is not kind) or (size and size + item.size_bytes > self._group_bytes):
                    break
                kind = item.kind
            size += item.size_bytes
            count += item.count
            early = early or item.early
            taken += 1
        # A group without a body is written where only a sync was asked for.
        return _Plan(taken, kind or GroupType.STATES, count, padded(GROUP_HEADER_BYTES + size), early)

    def _start(self, file: NextFile) -> WriteGroup | None:
        assert self._tail is None, "a refused group's tail is removed before another file is started"
        assert file.number > self.number, "file numbers only grow"
        self._file = file
        self.number, self._offset, self._allocated = file.number, HEADER_BYTES, file.allocated
        return self._write(self._plan, file) if self._plan is not None else None

    def _write(self, plan: _Plan, file: NextFile) -> WriteGroup:
        assert self._tail is None, "nothing is written while a refused group's tail may stand"
        assert self._offset % ALIGNMENT == 0, "groups are aligned"
        offset = self._offset
        end = GroupPosition(file.number, offset + plan.length, self.sequence + 1)
        assert end.offset <= self._file_bytes or offset == HEADER_BYTES, "only a file's first group crosses its end"
        allocate: Extent | None = None
        if end.offset > self._allocated:
            size = max(end.offset, min(self._allocated + self._preallocate_bytes, self._file_bytes))
            allocate = Extent(self._allocated, size - self._allocated)
            self._allocated = size
        self.sequence, self._offset = end.sequence, end.offset
        self._plan = None
        return WriteGroup(plan.items, plan.kind, plan.records, offset, end, allocate, end.offset < file.stale_end, plan.early)

    def _refuse(self, synced: GroupPosition) -> None:
        assert synced.sequence <= self.sequence, "what is synced was formed before"
        if self._file is not None:
            # Nothing is built on bytes that may or may not have reached the disk.
            self._tail = synced.offset if synced.file_number == self.number else HEADER_BYTES
            self._file = None
        self.sequence = synced.sequence
        self._plan = None


# Events of `GroupCommit`.


class GroupSynced(NamedTuple):
    """A group of `items` items with `size_bytes` bytes is durable up to `end`."""

    items: int
    size_bytes: int
    end: GroupPosition


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """Writing or syncing failed. `items` and `size_bytes` count everything that waited.

    Args:
        no_space: the disk is full.
        acknowledged: an item of the group was acknowledged before its sync.
    """

    items: int
    size_bytes: int
    no_space: bool
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class JournalCloseRequested:
    """No further group is refused in favour of a later one."""


CommitEvent = GroupSynced | WriteFailed | JournalCloseRequested

# Commands of `GroupCommit`.


@dataclass(frozen=True, slots=True)
class ResumeBehind:
    """Refuse everything that waited, and go on behind `synced`."""

    synced: GroupPosition


@dataclass(frozen=True, slots=True)
class FailJournal:
    """Nothing can be made durable any more: fail everything that waited."""


CommitCommand = ResumeBehind | FailJournal


class GroupCommit:
    """Counts what the journal owes, and judges errors. Used on the event loop alone.

    Args:
        synced: end of the newest durable group.
        resumes: whether the journal outlives a full disk.
    """

    def __init__(self, synced: GroupPosition, *, resumes: bool) -> None:
        self.synced = synced
        """End of the newest durable group. Everything up to it was in the write cache before it was written."""
        self.unsynced = 0
        """Items submitted and not yet synced."""
        self.waiting_bytes = 0
        """Memory of those items."""
        self.failed = False
        self._resumes = resumes
        self._closing = False

    def submitted(self, size_bytes: int) -> None:
        """An item of `size_bytes` was queued. A method, since this event is the frequent one."""
        self.unsynced += 1
        self.waiting_bytes += size_bytes + ITEM_OVERHEAD_BYTES

    def step(self, event: CommitEvent) -> CommitCommand | None:
        """Process one event; returns a command where an error has one."""
        if isinstance(event, GroupSynced):
            self._release(event.items, event.size_bytes)
            assert event.end.sequence > self.synced.sequence, "groups become durable in order"
            self.synced = event.end
            return None
        if isinstance(event, WriteFailed):
            self._release(event.items, event.size_bytes)
            # An acknowledgement that came before its sync must not be lost unnoticed, so then the bookie ends.
            if event.no_space and self._resumes and not event.acknowledged and not self._closing and not self.failed:
                return ResumeBehind(self.synced)
            self.failed = True
            return FailJournal()
        self._closing = True
        return None

    def _release(self, items: int, size_bytes: int) -> None:
        self.unsynced -= items
        self.waiting_bytes -= size_bytes + ITEM_OVERHEAD_BYTES * items
        assert self.unsynced >= 0 <= self.waiting_bytes, "nothing is released twice"


def wants_file(end: GroupPosition, file_bytes: int, *, ready: bool, spares: int, may_prepare: bool) -> bool:
    """Whether the file that follows the current one should be made ready, from a spare or, if there is none, from a new spare.

    Args:
        end: of the newest durable group.
        ready: the next file is ready.
        spares: spare files at hand.
        may_prepare: whether a new spare may be made now.
    """
    if ready:
        return False
    return spares > 0 or (may_prepare and end.offset * PREPARE_BEYOND >= file_bytes)
