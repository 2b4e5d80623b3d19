"""The journal of one directory: group commit on a log device, files that roll, replay.

Three sides touch it: the loop (`submit`, answers), the device's thread (`_form`: file, offset, sequence), and at start a worker (`replay`).
Which files there are is the business of `journal_files`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, check_owner, decode_file_header
from triplicate.bookie.core.journal_format import (
    ALIGNMENT,
    END_BLOCK,
    GROUP_HEADER_BYTES,
    GROUP_MAGIC,
    REUSED_KEY,
    GroupPosition,
    GroupScanner,
    GroupType,
    JournalGroup,
    TornTail,
    encode_group,
    padded,
)
from triplicate.bookie.core.journal_mark import JournalMark, decode_mark, encode_mark
from triplicate.bookie.files import join, read_file, replace_file
from triplicate.bookie.journal.journal_files import NO_SPACE, PIECE_BYTES, SUFFIX, JournalFiles, NextFile
from triplicate.errors import CorruptionError
from triplicate.runtime import Clock, Disk, File, Group, LogDevice, Worker, fault_point, sleep

__all__ = ["MARK_NAME", "NO_SPACE", "SUFFIX", "Journal", "JournalItem", "JournalTotals", "ResponseSink"]

MARK_NAME = "mark"
PREPARE_BEYOND = 16
"""A spare is made once a file is filled to one part of so many: a bookie that nobody writes to writes no zeros."""
PREPARE_REST = 2.0
"""How long the making of a spare rests after each piece, in times of what that took."""
PREPARE_AGAIN_S = 10.0
"""Wait after a spare could not be made."""
ITEM_OVERHEAD_BYTES = 1024
"""Memory that something waiting for the journal takes beside its bytes: what asks for a sync only has none."""


class ResponseSink(Protocol):
    """Who receives the answers of a group: one write for all of them."""

    def answer(self, data: bytes) -> None: ...


@dataclass(slots=True, eq=False)
class JournalItem:
    """Something to be made durable, and what happens then."""

    kind: GroupType | None
    """None: nothing to write, only everything submitted before is to be synced."""
    buffers: list[Buffer]
    size_bytes: int
    count: int
    peer: ResponseSink | None = None
    answers: bytes = b""
    """Sent to `peer` after the sync."""
    early: bool = False
    """The answers are sent after the write and before the sync: a crash of the machine may lose what they acknowledge."""
    then: Callable[[bool], None] | None = None
    """Called on the loop: True after the sync, False when the journal failed (durable or not: unknown)."""
    refused: Callable[[], None] | None = None
    """Called on the loop where there was no space for it and the journal goes on: answers with an error instead of `answers`."""
    submitted_at: float = 0.0
    end: GroupPosition | None = field(default=None, init=False)
    """Where its group ends; set by the device's thread."""


@dataclass(slots=True)
class JournalTotals:
    """Counted per group; read by the metrics."""

    groups: int = 0
    entries: int = 0
    bytes: int = 0


class Journal:
    """See the module's text.

    Args:
        directory: holds the files and the mark.
        preallocate_bytes, file_bytes, group_bytes, spare_files: see `BookieSettings`.
        on_group: called on the loop after each group with its items.
        on_failure: called on the loop once, when a write or sync failed: nothing can be acknowledged any more.
        on_full: called on the loop when there was no space for a group: everything that waited was refused, and the next group goes to
            a new file. None: that is a failure like others.
    """

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        directory: str,
        identity: FileIdentity,
        *,
        preallocate_bytes: int,
        file_bytes: int,
        group_bytes: int,
        on_group: Callable[[list[JournalItem]], None],
        on_failure: Callable[[OSError], None],
        on_full: Callable[[OSError], None] | None = None,
        spare_files: int = 0,
    ) -> None:
        self.directory = directory
        self.waiting_bytes = 0
        self.submitted_at = -math.inf
        """When the newest item came."""
        self.failed = False
        self.torn: TornTail | None = None
        """What replay found at the end of the files."""
        self.groups_replayed = 0
        self._disk = disk
        self._clock = clock
        self._identity = identity
        self._preallocate_bytes = preallocate_bytes
        self._files = JournalFiles(
            disk, directory, identity, preallocate_bytes=preallocate_bytes, file_bytes=file_bytes, spares_max=spare_files
        )
        self._files_wanted = asyncio.Event()
        self._prepare_at = -math.inf
        self._file_bytes = self._files.file_bytes
        self._group_bytes = group_bytes
        self._on_group = on_group
        self._on_failure = on_failure
        self._on_full = on_full
        self._closing = False
        self._device: LogDevice[JournalItem] | None = None
        self._unsynced = 0
        """Items submitted and not yet synced."""
        self.synced = GroupPosition(0, HEADER_BYTES, 0)
        """The newest group whose sync is done; everything up to it has been in the write cache since before it was written."""
        self._replayed_to: GroupPosition | None = None
        """Behind the newest group that replay found or the mark covers; None where there was neither."""
        # The device's thread alone uses these once it runs.
        self._file: File | None = None
        """None: the next group begins a new one."""
        self._broken_off: tuple[File, int] | None = None
        """A file in which a write found no space, and where its last synced group ends."""
        self._number = 0
        self._offset = 0
        self._sequence = 0
        self._chosen = NextFile(0, "", 0, 0, False)
        """What `_file` was at its start."""
        self._allocated = 0

    # Start.

    def read_mark(self) -> JournalMark | None:
        """The stored mark, or None when there is none. Raises CorruptionError, FormatError, OSError."""
        path = join(self.directory, MARK_NAME)
        return decode_mark(read_file(self._disk, path), path) if self._disk.exists(path) else None

    def replay(self, mark: JournalMark | None) -> Iterator[JournalGroup]:
        """Every group behind the mark, in order, over all files; afterwards `open` may follow.

        Raises:
            CorruptionError: a group, or a file, between others is damaged or missing. FormatError: from a newer release.
        """
        files = self._files.journals()
        # Without a mark (none was written yet, or an operator deleted a damaged one) everything that is there is replayed.
        sequence = mark.sequence if mark is not None else None
        self._replayed_to = GroupPosition(mark.file_number, mark.offset, mark.sequence) if mark is not None else None
        newest: tuple[str, JournalGroup] | None = None
        after: TornTail | None = None
        if mark is not None and mark.file_number not in files:
            raise CorruptionError(
                f"{self.directory}: journal file {mark.file_number}, at which replay must begin, is missing: restore it, or replace this "
                "bookie's disks and let its peers copy the entries back"
            )
        for number, path in files.items():
            if mark is not None and number < mark.file_number:
                continue
            start = mark.offset if mark is not None and number == mark.file_number else HEADER_BYTES
            for group in self._groups_of(number, path, sequence, start, after):
                sequence = group.sequence
                newest = (path, group)
                self.groups_replayed += 1
                yield group
            after = self.torn if self.torn is not None and self.torn.path == path else None
        if newest is not None:
            self._write_again(*newest)
            self._replayed_to = newest[1].end
        self._sequence = sequence or 0
        # Spares count: what they hold has numbers too.
        self._number = max(self._files.highest_number(), mark.file_number if mark is not None else 0)

    def _groups_of(self, number: int, path: str, sequence: int | None, start: int, after: TornTail | None) -> Iterator[JournalGroup]:
        file = self._disk.open(path, readonly=True)
        try:
            size = file.size()
            header = file.pread(HEADER_BYTES, 0)
            try:
                identity = decode_file_header(header, JOURNAL_MAGIC, path)
            except CorruptionError:
                if self._holds_group(file, size, path, number):
                    raise
                # The crash came before the header's sync; no group is written before that.
                self.torn = TornTail(path, 0)
                return
            check_owner(identity, self._identity, number, JOURNAL_MAGIC, path)
            scanner = GroupScanner(file.pread, size, path, number, after=after, reused=identity.extra.get(REUSED_KEY) is True)
            yield from scanner.groups(sequence, start)
            if scanner.torn is not None:
                self.torn = scanner.torn
        finally:
            file.close()

    def _write_again(self, path: str, group: JournalGroup) -> None:
        """Make sure of the newest group, the only one whose sync may not be done: the next one's number builds on it.

        Of a process that was killed it may stand in the operating system's memory only. A sync alone would do then, but not where that
        process ended because a sync had failed: the system has reported that once, and takes the bytes for written ever since.
        """
        file = self._disk.open(path)
        try:
            size = group.end.offset - group.offset
            file.pwrite([file.pread(size, group.offset)], group.offset)
            file.sync()
        finally:
            file.close()

    def _holds_group(self, file: File, size: int, path: str, number: int) -> bool:
        scanner = GroupScanner(file.pread, size, path, number)
        return any(
            file.pread(len(GROUP_MAGIC), offset) == GROUP_MAGIC and scanner.is_group(offset)
            for offset in range(HEADER_BYTES, size, ALIGNMENT)
        )

    def open(self) -> bool:
        """Make a new file behind all that exist. Blocks.

        Returns:
            False where there is no space for it: the first group tries again.
        """
        try:
            self._files.open(self._number)
            self._start_file()
        except OSError as error:
            if error.errno not in NO_SPACE or self._replayed_to is None or self._on_full is None:
                raise
            self.synced = self._replayed_to
            return False
        self.synced = GroupPosition(self._number, HEADER_BYTES, self._sequence)
        return True

    def start(self) -> None:
        """Start the device; on the loop."""
        self._device = self._disk.log_device(f"journal {self.directory}", self._form, self._done, self._fail, self._written)

    # On the loop.

    def submit(self, item: JournalItem) -> None:
        """Queue an item. The caller looks at `waiting_bytes` and holds its peers back.

        Raises:
            OSError: the journal failed or is closed; the item is not taken.
        """
        if self._device is None or self.failed:
            raise OSError("the journal takes nothing more")
        item.submitted_at = self.submitted_at = self._clock.monotonic()
        self._device.submit(item)
        self._unsynced += 1
        self.waiting_bytes += item.size_bytes + ITEM_OVERHEAD_BYTES

    def barrier(self, then: Callable[[bool], None]) -> None:
        """Call `then` after a sync that covers everything submitted before; at once where all of that is synced already.

        Raises:
            OSError: as `submit`.
        """
        if self._unsynced or self.failed:
            self.submit(JournalItem(None, [], 0, 0, then=then))
        else:
            then(True)

    async def close(self) -> None:
        """Sync and answer what is queued, then close the file."""
        self._closing = True
        if self._device is not None:
            await self._device.close()
            self._device = None
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._broken_off is not None:
            self._broken_off[0].close()
            self._broken_off = None

    @fault_point("bookie.journal.synced")
    def _done(self, items: list[JournalItem]) -> None:
        end = items[-1].end
        assert end is not None
        self.synced = end
        if self._wants_file(end):
            self._files_wanted.set()
        self._settled(items)
        _answer(items)
        for item in items:
            if item.then is not None:
                item.then(True)
        self._on_group(items)

    def _wants_file(self, end: GroupPosition) -> bool:
        """Whether there is something to do for `keep_files`."""
        files = self._files
        if files.ready_after(end.file_number) is not None:
            return False
        if files.spares:
            return True
        return files.may_prepare and end.offset * PREPARE_BEYOND >= self._file_bytes and self._clock.monotonic() >= self._prepare_at

    async def keep_files(self, worker: Worker) -> None:
        """Have the file that comes next ready before it is needed, from a spare or written in the background. Ends by being cancelled.

        Raises:
            OSError: the disk failed, in what others rely on.
        """
        while True:
            await self._files_wanted.wait()
            self._files_wanted.clear()
            if self._wants_file(self.synced) and not await worker.run(self._files.make_ready, self._number):
                if await self._prepare(worker):
                    await worker.run(self._files.make_ready, self._number)
                else:
                    self._prepare_at = self._clock.monotonic() + PREPARE_AGAIN_S

    @fault_point("bookie.journal.prepare")
    async def _prepare(self, worker: Worker) -> bool:
        """Make a spare, slowly: appends have the disk first. Returns False where there is no space to."""
        if not await worker.run(self._files.begin_preparing):
            return False
        for offset in range(0, self._file_bytes, PIECE_BYTES):
            before = self._clock.monotonic()
            if not await worker.run(self._files.prepare_piece, offset):
                return False
            await sleep(self._clock, PREPARE_REST * (self._clock.monotonic() - before))
        await worker.run(self._files.finish_preparing)
        return True

    def _fail(self, items: list[JournalItem], error: OSError) -> None:
        self._settled(items)
        # What was acknowledged before its sync must not be lost without anybody's noticing, so then the bookie ends.
        acknowledged = any(item.early and item.peer is None for item in items)
        if error.errno in NO_SPACE and self._on_full is not None and not acknowledged and not self._closing:
            self._go_on_elsewhere()
            for item in items:
                if item.then is not None:
                    item.then(False)
                if item.refused is not None:
                    item.refused()
            self._on_full(error)
            return
        self.failed = True
        for item in items:
            if item.then is not None:
                item.then(False)
        self._on_failure(error)

    def _go_on_elsewhere(self) -> None:
        """After a group for which there was no space. How much of it is on the disk nobody knows, so nothing is built on it.

        The device's thread has ended, so what belongs to it may be changed here.
        """
        if self._file is not None:
            same = self.synced.file_number == self._number
            self._broken_off = self._file, self.synced.offset if same else HEADER_BYTES
            self._file = None
        self._sequence = self.synced.sequence
        self.start()

    def _written(self, items: list[JournalItem]) -> None:
        early = [item for item in items if item.early]
        _answer(early)
        for item in early:
            item.peer = None

    def _settled(self, items: list[JournalItem]) -> None:
        self._unsynced -= len(items)
        self.waiting_bytes -= sum([item.size_bytes for item in items]) + ITEM_OVERHEAD_BYTES * len(items)

    # On the device's thread.

    def _form(self, items: list[JournalItem]) -> tuple[Group, int]:
        kind: GroupType | None = None
        buffers: list[Buffer] = []
        size = count = taken = 0
        early = False
        for item in items:
            if item.kind is not None:
                if (kind is not None and item.kind is not kind) or (size and size + item.size_bytes > self._group_bytes):
                    break
                kind = item.kind
            buffers += item.buffers
            size += item.size_bytes
            count += item.count
            early = early or item.early
            taken += 1
        length = padded(GROUP_HEADER_BYTES + size)
        if self._file is None:
            self._cut_broken_off()
            self._start_file()
        elif self._is_over(self._offset + length):
            self._start_file()
        assert self._file is not None
        end = GroupPosition(self._number, self._offset + length, self._sequence + 1)
        self._allocate(end.offset)
        # A group without a body is what is written where only a sync was asked for.
        body = encode_group(kind or GroupType.STATES, self._number, self._sequence + 1, count, buffers)
        if end.offset < self._chosen.stale_end:
            body.append(END_BLOCK)
        group = Group(self._file, self._offset, body, tell_written=early)
        self._sequence, self._offset = end.sequence, end.offset
        for item in items[:taken]:
            item.end = end
        return group, taken

    def _is_over(self, end: int) -> bool:
        """Whether a group that would end there goes to another file: this one is full, or one that was written before is ready."""
        if end > self._file_bytes and self._offset > HEADER_BYTES:
            return True
        return not self._chosen.written and self._files.ready_after(self._number) is not None

    def _allocate(self, end: int) -> None:
        assert self._file is not None
        if end > self._allocated:
            size = max(end, min(self._allocated + self._preallocate_bytes, self._file_bytes))
            self._file.allocate(self._allocated, size - self._allocated)
            self._allocated = size

    @fault_point("bookie.journal.cut")
    def _cut_broken_off(self) -> None:
        """Take away what a refused group may have left, since the next group, in another file, takes its number."""
        if self._broken_off is not None:
            file, end = self._broken_off
            file.truncate(end)
            file.sync()
            file.close()
            self._broken_off = None

    @fault_point("bookie.journal.file")
    def _start_file(self) -> None:
        chosen, file = self._files.start_next(self._number)
        if self._file is not None:
            self._file.close()
        self._file, self._chosen = file, chosen
        self._number, self._offset, self._allocated = chosen.number, HEADER_BYTES, chosen.allocated

    # On a worker.

    @fault_point("bookie.mark")
    def write_mark(self, position: GroupPosition, flush_number: int) -> None:
        """Move the mark forward to `position`; never back. Then the files that lie wholly behind it are no longer needed."""
        current = self.read_mark()
        if current is not None and current.sequence > position.sequence:
            return
        mark = JournalMark(position.file_number, position.offset, position.sequence, flush_number)
        replace_file(self._disk, self.directory, MARK_NAME, encode_mark(mark))
        self._files.retire(position.file_number, self._number)

    def give_back_spares(self, short: bool) -> None:
        """While the disk is `short` of space, keep no file beside the one that comes next."""
        self._files.set_short_of_space(short, self._number)


def _answer(items: list[JournalItem]) -> None:
    """One write for all answers of a peer."""
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
