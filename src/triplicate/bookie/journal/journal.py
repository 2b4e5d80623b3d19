"""The journal of one directory while it runs: group commit on a log device.

`Journal` is the event loop's side: it queues items and sends answers. `GroupWriter` is the side of the device's thread. Their decisions
is decided by the machines in `core/journal_machine.py`. `ClosedJournal` replays the directory before; `JournalFiles` has its files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from triplicate.bookie.core.journal_format import GroupPosition
from triplicate.bookie.core.journal_machine import GroupCommit, GroupSynced, JournalCloseRequested, ResumeBehind, WriteFailed
from triplicate.bookie.core.journal_mark import JournalMark
from triplicate.bookie.files import NO_SPACE
from triplicate.bookie.journal.closed_journal import OpenJournal
from triplicate.bookie.journal.journal_item import JournalItem, ResponseSink
from triplicate.bookie.journal.spare_keeper import SpareKeeper
from triplicate.runtime import Clock, Disk, LogDevice, fault_point


@dataclass(frozen=True, slots=True)
class JournalCallbacks:
    """Called by a journal on the loop."""

    on_group: Callable[[list[JournalItem]], None]
    """After each group, with its items."""
    on_failure: Callable[[OSError], None]
    """Once, when a write or sync failed: nothing can be acknowledged any more."""
    on_full: Callable[[OSError], None] | None = None
    """A group found no space: everything that waited was refused, and the next group goes to a new file. None: the journal fails."""


class Journal:
    """A running journal; built on the loop. See the module's text."""

    def __init__(self, disk: Disk, clock: Clock, opened: OpenJournal, callbacks: JournalCallbacks) -> None:
        self.directory = opened.directory
        self.replayed = opened.replayed
        self.commit = GroupCommit(opened.synced, resumes=opened.resumes)
        """Counts the synced and the waiting items, and judges errors."""
        self.spares = SpareKeeper(clock, opened.files, opened.writer)
        self.submitted_at = -math.inf
        """When the newest item was submitted, on the clock's monotonic time."""
        self._disk = disk
        self._clock = clock
        self._mark = opened.mark
        self._files = opened.files
        self._writer = opened.writer
        self._callbacks = callbacks
        self._device = self._new_device()

    def _new_device(self) -> LogDevice[JournalItem]:
        return self._disk.log_device(f"journal {self.directory}", self._writer.form, self._synced, self._failed, self._written)

    @property
    def synced(self) -> GroupPosition:
        """End of the newest durable group."""
        return self.commit.synced

    @property
    def waiting_bytes(self) -> int:
        """Memory of the items that wait for a sync, in bytes."""
        return self.commit.waiting_bytes

    @property
    def failed(self) -> bool:
        """Whether the journal ended with an error."""
        return self.commit.failed

    # On the loop.

    def submit(self, item: JournalItem) -> None:
        """Queue an item. The caller bounds `waiting_bytes` by holding its peers back.

        Raises:
            OSError: the journal failed or is closed; the item is not queued.
        """
        if self.commit.failed:
            raise OSError("the journal has failed and accepts nothing more")
        item.submitted_at = self.submitted_at = self._clock.monotonic()
        self._device.submit(item)
        self.commit.submitted(item.size_bytes)

    def barrier(self, then: Callable[[bool], None]) -> None:
        """Call `then` after a sync that covers everything submitted before; at once if all of that is synced.

        Raises:
            OSError: as `submit`.
        """
        if self.commit.unsynced or self.commit.failed:
            self.submit(JournalItem(None, [], 0, 0, then=then))
        else:
            then(True)

    async def close(self) -> None:
        """Sync and answer what is queued, then close the file."""
        self.commit.step(JournalCloseRequested())
        await self._device.close()
        self._writer.close()

    @fault_point("bookie.journal.synced")
    def _synced(self, items: list[JournalItem]) -> None:
        end = items[-1].end
        assert end is not None, "the device's thread sets the end"
        self.commit.step(GroupSynced(len(items), _size_of(items), end))
        self.spares.group_synced(end)
        _answer(items)
        for item in items:
            if item.then is not None:
                item.then(True)
        self._callbacks.on_group(items)

    def _failed(self, items: list[JournalItem], error: OSError) -> None:
        acknowledged = any(item.early and item.peer is None for item in items)
        command = self.commit.step(WriteFailed(len(items), _size_of(items), error.errno in NO_SPACE, acknowledged))
        if isinstance(command, ResumeBehind):
            # The device's thread has ended, so the writer may be used here.
            self._writer.refuse(command.synced)
            self._device = self._new_device()
        for item in items:
            if item.then is not None:
                item.then(False)
            if item.refused is not None and isinstance(command, ResumeBehind):
                item.refused()
        on_full = self._callbacks.on_full
        if isinstance(command, ResumeBehind) and on_full is not None:
            on_full(error)
        else:
            self._callbacks.on_failure(error)

    def _written(self, items: list[JournalItem]) -> None:
        early = [item for item in items if item.early]
        _answer(early)
        for item in early:
            item.peer = None

    # On a worker.

    def read_mark(self) -> JournalMark | None:
        """The stored mark, or None when there is none. Raises CorruptionError, FormatError, OSError."""
        return self._mark.read()

    @fault_point("bookie.mark")
    def write_mark(self, position: GroupPosition, flush_number: int) -> None:
        """Move the mark forward to `position`, never back; then retire the files that lie wholly before it. Raises as `read_mark`."""
        if self._mark.advance(JournalMark(position.file_number, position.offset, position.sequence, flush_number)):
            self._files.retire(position.file_number, self._writer.number)

    def set_short_of_space(self, short: bool) -> None:
        """While the disk is `short` of space, keep no file beside the one that comes next. Raises OSError."""
        self._files.set_short_of_space(short, self._writer.number)


def _size_of(items: list[JournalItem]) -> int:
    return sum([item.size_bytes for item in items])


def _answer(items: list[JournalItem]) -> None:
    """Send each peer's answers at once."""
    answers: dict[int, tuple[ResponseSink, list[bytes]]] = {}
    for item in items:
        peer = item.peer
        if peer is not None:
            known = answers.get(id(peer))
            if known is None:
                answers[id(peer)] = peer, [item.answers]
            else:
                known[1].append(item.answers)
    for peer, parts in answers.values():
        peer.answer(parts[0] if len(parts) == 1 else b"".join(parts))
