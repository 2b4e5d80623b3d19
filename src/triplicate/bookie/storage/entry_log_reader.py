"""Reads entries from the runs of entry logs. All methods block and belong on one worker."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

from triplicate.bookie.core.entry_log_format import (
    SIZE,
    BlockInfo,
    EntryLogScanner,
    RunTable,
    split_entry,
)
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, File

OPEN_FILES_MAX = 64
READ_AHEAD_BYTES = 64 * 1024
TABLES_SHARE = 4
"""The fraction (1/n) of the read cache that holds tables of runs."""
ROW_MEMORY_BYTES = 80
"""Memory of a table's row: two integers and their places in two tuples."""


class EntryLogReader:
    """Reads entries of runs, with bounded caches of tables and of blocks read ahead. One worker uses it."""

    def __init__(self, disk: Disk, paths: dict[int, str], cache_bytes: int) -> None:
        self._disk = disk
        self._paths = paths
        self._files: OrderedDict[int, File] = OrderedDict()
        self._tables: OrderedDict[tuple[int, int], RunTable] = OrderedDict()
        self._tables_bytes = 0
        self._tables_limit = cache_bytes // TABLES_SHARE
        self._ahead: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._ahead_limit = max(1, (cache_bytes - self._tables_limit) // READ_AHEAD_BYTES)

    def path(self, log: int) -> str:
        """The path of a log. Raises CorruptionError: the index names a log that does not exist."""
        path = self._paths.get(log)
        if path is None:
            raise CorruptionError(f"entry log {log}, which the index names, is in none of the ledger directories")
        return path

    def entry(self, log: int, run: BlockInfo, entry_id: int) -> bytes | None:
        """One entry, or None when the run does not hold it. Raises CorruptionError, OSError."""
        table = self._table(log, run)
        place = table.find(entry_id)
        if place is None:
            return None
        start, size = place
        offset = run.body_offset + start
        return split_entry(self._read(log, SIZE.size + size, offset), size, self.path(log), offset)

    def stretch(self, log: int, run: BlockInfo, entry_id: int, count_max: int, size_max: int) -> tuple[bytes, int] | None:
        """As `LedgerStorage.stretch`, for one run; None if the run has gaps, or if the first entry alone is too large.

        Only the sizes are compared with the table, so that no neighbour is read from a wrong place.
        """
        if run.count != run.last - run.first + 1:
            return None
        table = self._table(log, run)
        offsets, first = table.offsets, entry_id - run.first
        start = offsets[first]
        end = min(first + count_max, run.count)
        if (table.body_bytes if end == run.count else offsets[end]) - start > size_max:
            # The last entry that still fits ends where the next begins.
            end = bisect_right(offsets, start + size_max, first, end + 1 if end < run.count else end) - 1
        if end <= first:
            return None
        stop = table.body_bytes if end == run.count else offsets[end]
        data = self._read(log, stop - start, run.body_offset + start)
        places = offsets[first:end]
        sizes = [after - before - SIZE.size for before, after in pairwise([*places, stop])]
        found = b"".join([data[place - start : place - start + SIZE.size] for place in places])
        if len(data) != stop - start or found != struct.pack(f">{len(sizes)}I", *sizes):
            raise CorruptionError(f"{self.path(log)}: an entry behind byte {run.body_offset + start} does not have the size in the table")
        return data, end - first

    def ids(self, log: int, run: BlockInfo) -> Sequence[int]:
        """The ids of the entries that a run holds, ascending."""
        return self._table(log, run).ids

    def forget(self, log: int) -> None:
        """Close a log that is to be deleted."""
        file = self._files.pop(log, None)
        if file is not None:
            file.close()
        for key in [key for key in self._tables if key[0] == log]:
            self._tables_bytes -= len(self._tables.pop(key).ids) * ROW_MEMORY_BYTES
        for block in [key for key in self._ahead if key[0] == log]:
            del self._ahead[block]

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _file(self, log: int) -> File:
        file = self._files.get(log)
        if file is None:
            file = self._disk.open(self.path(log), readonly=True)
            self._files[log] = file
            if len(self._files) > OPEN_FILES_MAX:
                self._files.popitem(last=False)[1].close()
        else:
            self._files.move_to_end(log)
        return file

    def _table(self, log: int, run: BlockInfo) -> RunTable:
        key = log, run.offset
        table = self._tables.get(key)
        if table is None:
            file = self._file(log)
            table = EntryLogScanner(file.pread, file.size(), file.path).run_table(run)
            self._tables[key] = table
            self._tables_bytes += len(table.ids) * ROW_MEMORY_BYTES
            while self._tables_bytes > self._tables_limit and len(self._tables) > 1:
                self._tables_bytes -= len(self._tables.popitem(last=False)[1].ids) * ROW_MEMORY_BYTES
        else:
            self._tables.move_to_end(key)
        return table

    def _read(self, log: int, size: int, offset: int) -> bytes:
        """`size` bytes at `offset`. Small reads are served from whole blocks, which stay in memory for sequential readers."""
        first, last = offset // READ_AHEAD_BYTES, (offset + size - 1) // READ_AHEAD_BYTES
        if last - first > 1:
            return self._file(log).pread(size, offset)
        parts = [self._block(log, number, offset + size) for number in range(first, last + 1)]
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        start = offset - first * READ_AHEAD_BYTES
        return data[start : start + size]

    def _block(self, log: int, number: int, needed_end: int) -> bytes:
        key = log, number
        block = self._ahead.get(key)
        start = number * READ_AHEAD_BYTES
        # The log being filled grows: a block cached from its end may lack newer bytes.
        if block is None or (len(block) < READ_AHEAD_BYTES and start + len(block) < needed_end):
            block = self._file(log).pread(READ_AHEAD_BYTES, start)
            self._ahead[key] = block
            if len(self._ahead) > self._ahead_limit:
                self._ahead.popitem(last=False)
        else:
            self._ahead.move_to_end(key)
        return block
