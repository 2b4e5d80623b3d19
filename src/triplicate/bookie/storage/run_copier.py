"""Copies the living runs of an entry log, in portions. Blocks; the writer's worker calls it between flushes.

A batch of runs is copied and synced, then one commit of the index points their rows to the new place. The old log is deleted once no row
points to it. A crash in between leaves a copy that the index does not know, or an old run that is no longer read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from operator import attrgetter

from triplicate.bookie.core.entry_log_format import BLOCK_HEADER_BYTES, BlockInfo, EntryLogScanner
from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.run_check import ids_of
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, File, fault_point

BATCH_RUNS = 500
BATCH_BYTES = 64 * 1024 * 1024
"""A batch is committed once it has this many runs or bytes."""


@dataclass(slots=True)
class _Copy:
    """A run that is being copied."""

    run: BlockInfo
    log: int
    place: BlockInfo
    position: int
    """Offset in the old log of the next part of the body."""


class RunCopier:
    """Copies one log at a time, into logs of its own: `begin`, `portion` until nothing is left, and finally `finish`."""

    def __init__(self, disk: Disk, index: Index, writer: EntryLogWriter, paths: dict[int, str]) -> None:
        self._disk = disk
        self._index = index
        self._writer = writer
        self._paths = paths
        self._log = 0
        """The log that is copied; 0: none."""
        self._page: deque[BlockInfo] = deque()
        self._last: BlockInfo | None = None
        self._run: BlockInfo | None = None
        """The run that is copied next."""
        self._copy: _Copy | None = None
        self._moved: list[tuple[BlockInfo, int, int]] = []
        self._moved_bytes = 0
        self._superseded: list[BlockInfo] = []
        """Damaged runs that no read needs any more."""

    @property
    def busy(self) -> list[int]:
        """Logs that must not be deleted although the index may not know that they hold living runs."""
        return [*self._writer.busy, *([self._log] if self._log else [])]

    def begin(self, log: int, needed_bytes: int) -> None:
        """Start copying this log. Uncommitted copies of another log are forgotten.

        Args:
            needed_bytes: free space that the target directory should have.
        """
        if self._log:
            self._drop()
        self._log = log
        self._last = None
        self._writer.need(needed_bytes)

    def portion(self, size_bytes: int) -> tuple[int, bool]:
        """Copy about this many bytes more. Returns the number copied, and whether everything living in the log has moved.

        A damaged run whose entries have all been stored again is forgotten.

        Raises:
            CorruptionError: the log is damaged. OSError. In both cases uncommitted copies are forgotten.
        """
        file: File | None = None
        copied = 0
        try:
            while self._ready():
                if copied >= size_bytes:
                    return copied, False
                # Not before: a log in which nothing lives may already be deleted.
                file = file or self._disk.open(self._paths[self._log], readonly=True)
                if self._copy is None:
                    copied += self._start(file)
                if self._copy is not None:
                    copied += self._go_on(file, size_bytes - copied)
        except (OSError, CorruptionError) as error:
            self._drop(error if isinstance(error, OSError) else None)
            raise
        finally:
            if file is not None:
                file.close()
        self._log = 0
        return copied, True

    def finish(self) -> None:
        """Give the target log its footer, unless a copy is unfinished: then the next start cuts it. Idempotent."""
        if self._log:
            self._drop()
            return
        self._writer.finish()
        sizes = self._writer.sync()
        if sizes:
            self._index.set_sizes(sizes.items())

    def abandon(self) -> None:
        """Close the target log unchanged; the next start cuts it to its committed length."""
        self._drop()

    def _drop(self, error: OSError | None = None) -> None:
        self._writer.abandon(error)
        self._page.clear()
        self._log, self._run, self._copy = 0, None, None
        self._moved, self._moved_bytes, self._superseded = [], 0, []

    def _ready(self) -> bool:
        """Whether there is a run to copy. Commits if a batch is full or nothing is left."""
        if self._copy is not None or self._run is not None:
            return True
        if not self._page:
            self._page.extend(self._index.runs_in(self._log, BATCH_RUNS, self._last))
        if not self._page or len(self._moved) >= BATCH_RUNS or self._moved_bytes >= BATCH_BYTES:
            self._commit()
        if self._page:
            self._run = self._last = self._page.popleft()
        return self._run is not None

    def _start(self, file: File) -> int:
        """Check header and table of the current run, and begin its copy; returns their size."""
        run, self._run = self._run, None
        assert run is not None, "there is one"
        size = BLOCK_HEADER_BYTES + run.table_bytes
        head = file.pread(size, run.offset)
        try:
            EntryLogScanner(lambda length, offset: head, file.size(), file.path).block(run.offset, run)
        except CorruptionError:
            if not self._is_superseded(run):
                raise
            self._superseded.append(run)
            return size
        log, place = self._writer.copy_of(run, head)
        self._copy = _Copy(run, log, place, run.body_offset)
        return size

    def _go_on(self, file: File, size_bytes: int) -> int:
        """Copy a part of the current body; returns its size."""
        copy = self._copy
        assert copy is not None, "a copy was begun"
        size = min(size_bytes, copy.run.end - copy.position)
        if size > 0:
            data = file.pread(size, copy.position)
            if len(data) != size:
                raise CorruptionError(f"{file.path}: the run at byte {copy.run.offset} ends early")
            self._writer.copy(data, copy.place)
            copy.position += size
        if copy.position == copy.run.end:
            self._moved.append((copy.run, copy.log, copy.place.offset))
            self._moved_bytes += copy.run.end - copy.run.offset
            self._copy = None
        return max(size, 0)

    @fault_point("bookie.compaction.commit")
    def _commit(self) -> None:
        """The order of these two steps makes a crash harmless."""
        if self._moved:
            sizes = self._writer.sync()
            self._index.move_runs(self._log, self._moved, sizes.items())
            self._moved, self._moved_bytes = [], 0
        if self._superseded:
            self._index.forget_runs(self._log, self._superseded)
            self._superseded = []

    def _is_superseded(self, run: BlockInfo) -> bool:
        """Whether newer runs hold as many entries in the range of a damaged run as it does. Reads take the newer copies."""
        newer: list[range] = []
        for log, other in self._index.runs_of(run.ledger_id):
            if (other.flush_number, log, other.offset) > (run.flush_number, self._log, run.offset):
                newer += ids_of(self._disk, self._paths.get(log), other)
        held, end = 0, run.first
        for ids in sorted(newer, key=attrgetter("start")):
            start, stop = max(ids.start, end), min(ids.stop, run.last + 1)
            held += max(0, stop - start)
            end = max(end, stop)
        return held >= run.count
