"""Reads the runs of an entry log and checks every entry, in portions. Blocks; the scrubber's worker calls it.

The checks: the run stands where the index says, its header and table are whole, each size equals that of the table, each entry has the
ledger and the id of its place, and its digest is right where the ledger's metadata allow that. Files are read past the caches of the
reader, which may hold bytes from before the damage.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from triplicate.bookie.core.entry_log_format import (
    BLOCK_HEADER_BYTES,
    SIZE,
    BlockInfo,
    EntryLogScanner,
    RunTable,
    consecutive,
    decode_run_table,
)
from triplicate.bookie.core.scrub_state import Damage
from triplicate.bookie.storage.index import Index
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Disk, File

ENTRIES_AT_ONCE = 256
"""Entries that are checked before other threads may run."""
ENTRY_NAME = struct.Struct(">qq")
"""Ledger id and entry id, with which every entry begins."""


@dataclass(frozen=True, slots=True)
class CheckedPortion:
    """The result of one portion."""

    entries: int
    size_bytes: int
    damage: tuple[Damage, ...]


@dataclass(slots=True)
class _OpenRun:
    """A run that is being checked."""

    run: BlockInfo
    table: RunTable
    row: int = 0
    """The next row of the table."""


class RunCheck:
    """The check of some runs of one ledger in one entry log: `portion` until `done`, and finally `close`.

    Args:
        path: of the entry log; None if there is no such file.
        is_right: whether the digest of an entry is right; None if it cannot be verified.
        counts: whether the copy of an entry in a run is the one that reads deliver. Damage of other copies is of no concern.
        step_aside: lets other threads run.
    """

    def __init__(
        self,
        disk: Disk,
        path: str | None,
        log: int,
        runs: Iterable[BlockInfo],
        is_right: Callable[[bytes], bool] | None,
        counts: Callable[[int, BlockInfo], bool],
        step_aside: Callable[[], None],
    ) -> None:
        self._disk = disk
        self._path = path
        self._log = log
        self._waiting = deque(runs)
        self._is_right = is_right
        self._counts = counts
        self._step_aside = step_aside
        self._file: File | None = None
        self._open: _OpenRun | None = None
        self._damage: list[Damage] = []

    @property
    def done(self) -> bool:
        """Whether all runs are checked."""
        return self._open is None and not self._waiting

    def close(self) -> None:
        """Close the entry log. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def portion(self, size_bytes: int) -> CheckedPortion:
        """Check about this many bytes more. Raises CorruptionError: the index, which shows whether a damaged copy counts."""
        entries = size = 0
        while not self.done and size < size_bytes:
            if self._open is None:
                size += self._begin(self._waiting.popleft())
            else:
                count, read = self._go_on(self._open, size_bytes - size)
                entries += count
                size += read
        found, self._damage = self._damage, []
        return CheckedPortion(entries, size, tuple(found))

    def _begin(self, run: BlockInfo) -> int:
        """Check header and table of a run; returns their size."""
        size = BLOCK_HEADER_BYTES + run.table_bytes
        try:
            if self._path is None:
                raise CorruptionError(f"entry log {self._log}, which the index names, is in none of the ledger directories")
            if self._file is None:
                self._file = self._disk.open(self._path, readonly=True)
            file = self._file
            _, table = EntryLogScanner(file.pread, file.size(), file.path).block(run.offset, run)
            self._open = _OpenRun(run, decode_run_table(run, table, file.path))
        except (CorruptionError, FormatError, OSError) as error:
            self._report(run, range(run.first, run.last + 1), str(error))
        return size

    def _go_on(self, opened: _OpenRun, size_bytes: int) -> tuple[int, int]:
        """Check the next entries of a run; returns their number and size."""
        run, table, start = opened.run, opened.table, opened.row
        stop, begin = start + 1, table.offsets[start]
        while stop < len(table.ids) and stop - start < ENTRIES_AT_ONCE and table.offsets[stop] - begin < size_bytes:
            stop += 1
        end = table.offsets[stop] if stop < len(table.ids) else table.body_bytes
        try:
            data = self._read(run, begin, end - begin)
        except OSError:
            # One unreadable sector concerns few of these entries.
            for row in range(start, stop):
                self._check_alone(opened, row)
        else:
            offsets = [*table.offsets[start:stop], end]
            for entry_id, (place, following) in zip(table.ids[start:stop], pairwise(offsets), strict=True):
                self._check(run, entry_id, data[place - begin : following - begin])
        opened.row = stop
        if stop == len(table.ids):
            self._open = None
        self._step_aside()
        return stop - start, end - begin

    def _check_alone(self, opened: _OpenRun, row: int) -> None:
        run, entry_id = opened.run, opened.table.ids[row]
        begin, size = opened.table.extent(row)
        try:
            data = self._read(run, begin, SIZE.size + size)
        except OSError as error:
            self._report(run, range(entry_id, entry_id + 1), str(error))
        else:
            self._check(run, entry_id, data)

    def _read(self, run: BlockInfo, offset: int, size: int) -> bytes:
        assert self._file is not None, "the run's table was read"
        return self._file.pread(size, run.body_offset + offset)

    def _check(self, run: BlockInfo, entry_id: int, data: bytes) -> None:
        """Check one entry, as ``u32 size, entry``."""
        entry = data[SIZE.size :]
        reason = ""
        if data[: SIZE.size] != SIZE.pack(len(entry)):
            reason = "its size differs from that of the run's table"
        elif entry[: ENTRY_NAME.size] != ENTRY_NAME.pack(run.ledger_id, entry_id):
            reason = "it has the header of another entry"
        elif self._is_right is not None and not self._is_right(entry):
            reason = "its digest does not match"
        if reason:
            self._report(run, range(entry_id, entry_id + 1), reason)

    def _report(self, run: BlockInfo, entry_ids: range, reason: str) -> None:
        """Record the entries of which no other copy counts, as ranges."""
        damaged = [entry_id for entry_id in entry_ids if self._counts(entry_id, run)]
        for ids in consecutive(damaged):
            self._damage.append(Damage(run.ledger_id, ids.start, ids.stop - 1, self._log, reason))


def copy_counts(disk: Disk, paths: dict[int, str], index: Index, log: int, run: BlockInfo, entry_id: int) -> bool:
    """Whether reads of an entry deliver its copy in this run: no newer run has the entry, and the index still names this run.

    Raises:
        CorruptionError: the index is damaged. OSError: it is closed.
    """
    for other_log, other in index.runs_holding(run.ledger_id, entry_id):
        if (other_log, other.offset) == (log, run.offset):
            return True
        if any(entry_id in ids for ids in ids_of(disk, paths.get(other_log), other)):
            return False
    # Moved by compaction, or deleted: the run is checked at its new place, or is of no concern.
    return False


def ids_of(disk: Disk, path: str | None, run: BlockInfo) -> list[range]:
    """The ids of the entries that a run holds, as maximal ranges; none if its table is damaged, which its own check reports."""
    if run.count == run.last - run.first + 1:
        return [range(run.first, run.last + 1)]
    if path is None:
        return []
    try:
        file = disk.open(path, readonly=True)
        try:
            return consecutive(EntryLogScanner(file.pread, file.size(), path).run_table(run).ids)
        finally:
            file.close()
    except (CorruptionError, FormatError, OSError):
        return []
