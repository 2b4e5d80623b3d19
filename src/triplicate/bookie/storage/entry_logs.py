"""The entry logs of a bookie: one is being written, the others are finished. All methods block and belong on a worker.

Writing and reading happen on two workers at once. The writer touches only the log that it fills; readers open files of their own.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.entry_log_format import (
    MAX_RUN_BYTES,
    MAX_RUN_SPAN,
    SIZE,
    BlockInfo,
    BlockType,
    EntryLogScanner,
    RunTable,
    decode_run_table,
    encode_footer,
    encode_run,
    encode_states_block,
    split_entry,
)
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, FileIdentity, encode_file_header
from triplicate.bookie.core.ledger_data import LedgerData, decode_states
from triplicate.bookie.files import NO_SPACE, join, numbered_files, numbered_name
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, File, Trace

SUFFIX = ".entries"
WRITE_BYTES = 1024 * 1024
"""Blocks are buffered up to this size, then written and synced. A single sync of a whole flush would occupy the disk for longer than
adds can wait whose journal shares it."""
BLOCKS_MAX = 50_000
"""Maximum number of blocks in a log. The footer lists each of them and is kept in memory until the log is finished."""
OPEN_FILES_MAX = 64
READ_AHEAD_BYTES = 64 * 1024
TABLES_SHARE = 4
"""The fraction (1/n) of the read cache that holds tables of runs."""
ROW_MEMORY_BYTES = 80
"""Memory of a table's row: two integers and their places in two tuples."""


@dataclass(slots=True)
class _OpenLog:
    number: int
    directory: str
    file: File
    header: bytes
    end: int
    blocks: list[BlockInfo]
    told: int = 0
    """The length that the last `sync` returned. The index knows at most this many bytes of the log; 0: none."""


class EntryLogWriter:
    """Appends blocks. Call `run` and `states` any number of times, then `sync`; the returned places are valid only after that."""

    def __init__(
        self, disk: Disk, places: LedgerDirs, identity: FileIdentity, log_bytes: int, paths: dict[int, str], numbers: Iterator[int]
    ) -> None:
        """
        Args:
            paths: of all logs by number; the writer adds the logs that it creates.
            numbers: of logs to create; shared by all writers of the bookie.
        """
        self._disk = disk
        self._places = places
        self._paths = paths
        self._identity = identity
        self._log_bytes = log_bytes
        self._numbers = numbers
        self._open: _OpenLog | None = None
        self._finished: list[_OpenLog] = []
        """Logs that were finished since the last call of `sync`."""
        self._needed_bytes = 0
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0
        self.sizes: dict[int, int] = {}
        """Log and its durable length, for the logs written since the last call of `sync`."""

    @property
    def open_number(self) -> int | None:
        """The log being filled; it must not be deleted."""
        return self._open.number if self._open is not None else None

    @property
    def busy(self) -> list[int]:
        """Logs whose newest blocks the index may not know yet."""
        return [*self.sizes, *([self._open.number] if self._open is not None else [])]

    def runs(self, flush_number: int, ledger_id: int, entries: Mapping[int, Buffer]) -> Iterator[tuple[int, BlockInfo]]:
        """Write a ledger's entries as one run, or as several if the span or the size is too large; yields (log, run)."""
        entry_ids = sorted(entries)
        start = 0
        while start < len(entry_ids):
            part_ids = entry_ids[start : bisect_left(entry_ids, entry_ids[start] + MAX_RUN_SPAN, start)]
            part = list(map(entries.__getitem__, part_ids))
            if sum(map(len, part)) + SIZE.size * len(part) > MAX_RUN_BYTES:
                ends = list(accumulate([SIZE.size + len(entry) for entry in part]))
                most = max(1, bisect_right(ends, MAX_RUN_BYTES))
                del part_ids[most:], part[most:]
            yield self._run(flush_number, ledger_id, part_ids, part)
            start += len(part)

    def _run(self, flush_number: int, ledger_id: int, entry_ids: list[int], entries: list[Buffer]) -> tuple[int, BlockInfo]:
        log = self._log()
        head, body, info = encode_run(flush_number, ledger_id, entry_ids, entries, log.end)
        self._append(log, chain((head,), body), info)
        return log.number, info

    def states(self, flush_number: int, states: Sequence[LedgerData]) -> int:
        """Write state records as one block; returns the log."""
        log = self._log()
        buffers, info = encode_states_block(flush_number, states, log.end)
        self._append(log, buffers, info)
        return log.number

    def sync(self) -> dict[int, int]:
        """Sync everything written; returns the length of every log that has grown."""
        if self._open is not None:
            self._write(self._open)
            self._open.file.sync()
            self.sizes[self._open.number] = self._open.told = self._open.end
            self._places.worked(self._open.directory)
        self._finished.clear()
        sizes, self.sizes = self.sizes, {}
        return sizes

    def finish(self) -> None:
        """Close the log being filled with a footer and sync it. Idempotent.

        The blocks are synced before the footer is written, so a log with a footer holds nothing that a loss of power could take.
        """
        log = self._open
        if log is None:
            return
        self._write(log)
        log.file.sync()
        flush_number = max([block.flush_number for block in log.blocks], default=0)
        log.end += log.file.pwrite(encode_footer(flush_number, log.blocks, log.end, log.header), log.end)
        log.file.sync()
        self.sizes[log.number] = log.end
        log.file.close()
        self._finished.append(log)
        self._open = None

    def abandon(self, error: OSError | None = None) -> bool:
        """Close the file unchanged after a failure. Unsynced bytes lie beyond the last length that the index knows.

        After a lack of space the log is cut to that length, and a log that the index cannot know is deleted. Otherwise each attempt would
        fill the free space and leave it occupied.

        Returns:
            whether the failure was a lack of space, and another directory may have some.
        """
        log, self._open = self._open, None
        finished, self._finished = self._finished, []
        self._waiting, self._waiting_bytes = [], 0
        self.sizes = {}
        if log is not None:
            log.file.close()
        if error is None or error.errno not in NO_SPACE:
            return False
        for each in [*finished, *([log] if log is not None else [])]:
            self._free_space(each)
        # Only now: the directory counts as full until more is free than at this time.
        return log is not None and self._places.pass_over(log.directory)

    def _free_space(self, log: _OpenLog) -> None:
        """Free the bytes of a closed log that the index cannot know. They are not read, since places are valid only after `sync`."""
        path = self._paths[log.number]
        try:
            if not log.told:
                del self._paths[log.number]
                self._disk.delete(path)
                self._disk.sync_directory(log.directory)
                return
            file = self._disk.open(path)
            try:
                file.truncate(log.told)
                file.sync()
            finally:
                file.close()
        except OSError:
            # The disk has just refused another write, and that error is reported. The next start cuts or deletes the log.
            return

    def _log(self) -> _OpenLog:
        if self._open is not None and (self._open.end >= self._log_bytes or len(self._open.blocks) >= BLOCKS_MAX):
            self.finish()
        if self._open is None:
            self._open = self._new_log()
        return self._open

    def _new_log(self) -> _OpenLog:
        refused: OSError | None = None
        for directory in self._places.in_turn(self._needed_bytes):
            number = next(self._numbers)
            path = join(directory, numbered_name(number, SUFFIX))
            identity = FileIdentity(self._identity.bookie_id, self._identity.instance_id, number, self._identity.incarnation)
            header = encode_file_header(ENTRY_LOG_MAGIC, identity)
            try:
                file = self._make(directory, path, header)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self._places.pass_over(directory)
                refused = refused or error
            else:
                self._paths[number] = path
                return _OpenLog(number, directory, file, header, HEADER_BYTES, [])
        assert refused is not None, "there is a directory"
        raise refused

    def _make(self, directory: str, path: str, header: bytes) -> File:
        file = self._disk.open(path, create=True, exclusive=True)
        try:
            file.pwrite([header], 0)
            file.sync()
            self._disk.sync_directory(directory)
        except OSError:
            file.close()
            self._disk.delete(path)
            raise
        return file

    def need(self, size_bytes: int) -> None:
        """Continue in a directory with this much room, if there is one."""
        self._needed_bytes = size_bytes
        if self._open is not None and self._places.free_bytes(self._open.directory) < size_bytes:
            self.finish()

    def copy_of(self, run: BlockInfo, head: bytes) -> tuple[int, BlockInfo]:
        """Begin a copy of a run; returns its place. `copy` appends its body before anything else is written.

        Args:
            head: the run's header and table, unchanged from the source log.
        """
        log = self._log()
        place = replace(run, offset=log.end)
        self._enqueue(log, head)
        return log.number, place

    def copy(self, data: bytes, place: BlockInfo) -> None:
        """Append the next part of the body of a run that `copy_of` began."""
        log = self._open
        assert log is not None, "a copy was begun"
        self._enqueue(log, data)
        if log.end == place.end:
            log.blocks.append(place)

    def _append(self, log: _OpenLog, buffers: Iterable[Buffer], info: BlockInfo) -> None:
        for buffer in buffers:
            self._enqueue(log, buffer)
        assert log.end == info.end, "a block is as long as its header says"
        log.blocks.append(info)

    def _enqueue(self, log: _OpenLog, buffer: Buffer) -> None:
        self._waiting.append(buffer)
        self._waiting_bytes += len(buffer)
        log.end += len(buffer)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write(log)
            log.file.sync()

    def _write(self, log: _OpenLog) -> None:
        if self._waiting:
            log.file.pwrite(self._waiting, log.end - self._waiting_bytes)
            self._waiting, self._waiting_bytes = [], 0


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
            raise CorruptionError(f"{self.path(log)}: an entry behind byte {run.body_offset + start} has not the size that the table says")
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


@dataclass(slots=True)
class LogContent:
    """The content of one entry log, as found at start."""

    number: int
    path: str
    size: int
    blocks: list[BlockInfo]
    states: list[tuple[int, LedgerData]]
    """(flush number, state); filled only on request."""
    finished: bool
    damaged_at: int | None = None
    """Offset of a damaged block with a good one behind it. Blocks from there on are missing here."""
    broken: BlockInfo | None = None
    """A broken block with nothing whole behind it, as its header describes it: a write cut short by a crash, or damage."""
    passed: list[BlockInfo] = field(default_factory=list)
    """Broken runs with whole blocks behind them, as their headers describe them; filled only on request. The caller judges whether they
    count."""


def existing_logs(disk: Disk, directories: Sequence[str]) -> dict[int, str]:
    """Paths of all entry logs by number, ascending. Raises CorruptionError: two directories have the same number."""
    found: dict[int, str] = {}
    for directory in directories:
        for number, path in numbered_files(disk, directory, SUFFIX).items():
            if number in found:
                raise CorruptionError(f"{path} and {found[number]} have the same number: one is a copy; move it away")
            found[number] = path
    return dict(sorted(found.items()))


def read_log(disk: Disk, number: int, path: str, *, with_states: bool, trace: Trace, pass_torn_runs: bool = False) -> LogContent:
    """Read a log's blocks from its footer, or scan the log if it was never finished or the footer is damaged.

    Args:
        pass_torn_runs: continue behind broken runs whose headers lead to a whole block.

    Raises:
        CorruptionError: neither the header nor a footer can be read. FormatError: from a newer release.
    """
    file = disk.open(path, readonly=True)
    try:
        size = file.size()
        reader = EntryLogScanner(file.pread, size, path)
        blocks, damaged = reader.listed(file.pread(HEADER_BYTES, 0))
        for what, error in damaged.items():
            trace(f"bookie.{what}_damaged", path=path, error=str(error))
        finished = blocks is not None
        states: list[tuple[int, LedgerData]] = []
        damaged_at = broken = None
        passed: list[BlockInfo] = []
        if blocks is None:
            blocks, offset = [], HEADER_BYTES
            while offset:
                try:
                    for info, table in reader.scan(offset):
                        if info.type is BlockType.FOOTER:
                            break
                        blocks.append(info)
                        if with_states and info.type is BlockType.STATES:
                            states += [(info.flush_number, state) for state in decode_states(table, info.count)]
                    offset = 0
                except CorruptionError as error:
                    end = max(offset, blocks[-1].end) if blocks else offset
                    behind = reader.good_block_behind(end)
                    torn = reader.torn_runs(end, behind.offset) if behind is not None and pass_torn_runs else []
                    offset = behind.offset if torn and behind is not None else 0
                    passed += torn
                    if behind is None:
                        broken = reader.broken_block(end)
                    elif not torn:
                        damaged_at = end
                    trace("bookie.entry_log_ends_early", path=path, error=str(error), damaged=damaged_at is not None, passed=len(torn))
        elif with_states:
            for info in blocks:
                if info.type is BlockType.STATES:
                    states += [(info.flush_number, state) for state in decode_states(reader.block(info.offset)[1], info.count)]
        return LogContent(number, path, size, blocks, states, finished, damaged_at, broken, passed)
    finally:
        file.close()


def finish_log(disk: Disk, content: LogContent, durable_bytes: int, trace: Trace) -> int | None:
    """Give a log that a crash left open its footer, after cutting it to the length that the index knows to be durable.

    Bytes behind that length may exist only in the operating system's memory, although they look whole, and a later sync would not save
    them. No row points there, and the journal has their entries. If the index knows more bytes than there are, the log is damaged: it stays
    unchanged, and only its good blocks are readable.

    Returns:
        the length of the finished log, None for a damaged one.
    """
    blocks = [block for block in content.blocks if block.end <= durable_bytes]
    end = blocks[-1].end if blocks else HEADER_BYTES
    if end != durable_bytes and _finished_size(blocks, end) != durable_bytes:
        trace("bookie.entry_log_damaged", path=content.path, good_bytes=end, durable_bytes=durable_bytes)
        return None
    return _write_footer(disk, content.path, blocks, end, content.size, max(end, durable_bytes))


def _finished_size(blocks: list[BlockInfo], end: int) -> int:
    return end + sum(map(len, encode_footer(0, blocks, end, b"")))


def _write_footer(disk: Disk, path: str, blocks: list[BlockInfo], end: int, size: int, kept_bytes: int) -> int:
    """Cut a log and end it with a footer. If there is no space for the footer, keep `kept_bytes` of the log and nothing behind them."""
    file = disk.open(path)
    try:
        header = file.pread(HEADER_BYTES, 0)
        if size > kept_bytes:
            file.truncate(kept_bytes)
        flush_number = max([block.flush_number for block in blocks], default=0)
        try:
            written = file.pwrite(encode_footer(flush_number, blocks, end, header), end)
            file.sync()
        except OSError as error:
            if error.errno in NO_SPACE:
                file.truncate(kept_bytes)
            raise
        return end + written
    finally:
        file.close()


def drop_copies(disk: Disk, contents: Sequence[LogContent], is_known: Callable[[BlockInfo], bool]) -> None:
    """Keep one copy of each run that stands in several logs, and remove the other copies from `contents`.

    A log without a footer may hold bytes that were never synced, and a loss of power may have taken only the body of a run, which has no
    checksum. A finished log is therefore preferred, then a log in which the sizes before the entries match the table, then the older log,
    since compaction copies from it.

    Args:
        contents: of unfinished logs, by number.
        is_known: whether a finished log holds the same run.
    """
    kept: dict[tuple[int, ...], tuple[LogContent, BlockInfo]] = {}
    for content in contents:
        for block in content.blocks:
            if block.type is BlockType.RUN and not is_known(block):
                other = kept.setdefault(_identity(block), (content, block))
                if other[0] is not content and _is_torn(disk, *other) and not _is_torn(disk, content, block):
                    kept[_identity(block)] = content, block
    chosen = {(content.number, block.offset) for content, block in kept.values()}
    for content in contents:
        content.blocks = [block for block in content.blocks if block.type is not BlockType.RUN or (content.number, block.offset) in chosen]


def _identity(run: BlockInfo) -> tuple[int, ...]:
    return run.ledger_id, run.flush_number, run.first, run.last, run.count, run.body_bytes


def same_run(one: BlockInfo, other: BlockInfo) -> bool:
    """Whether two runs are copies of each other."""
    return _identity(one) == _identity(other)


def _is_torn(disk: Disk, content: LogContent, run: BlockInfo) -> bool:
    """Whether a size field before an entry of the run differs from the table."""
    file = disk.open(content.path, readonly=True)
    try:
        _, data = EntryLogScanner(file.pread, content.size, content.path).block(run.offset, run)
        table = decode_run_table(run, data, content.path)
        part, part_start = b"", 0
        for start, end in pairwise([*table.offsets, run.body_bytes]):
            if start + SIZE.size > part_start + len(part):
                part, part_start = file.pread(min(WRITE_BYTES, run.body_bytes - start), run.body_offset + start), start
            if part[start - part_start : start - part_start + SIZE.size] != SIZE.pack(end - start - SIZE.size):
                return True
        return False
    finally:
        file.close()


def secure_log(disk: Disk, content: LogContent) -> int:
    """Write an unfinished log again and finish it as it was found, when no index tells its durable length. Returns its length.

    Everything is written again: a sync alone would not save pages that a failed sync of the process before has left in memory.
    """
    end = content.blocks[-1].end if content.blocks else HEADER_BYTES
    file = disk.open(content.path)
    try:
        for offset in range(0, end, WRITE_BYTES):
            file.pwrite([file.pread(min(WRITE_BYTES, end - offset), offset)], offset)
        file.sync()
    finally:
        file.close()
    return _write_footer(disk, content.path, content.blocks, end, content.size, end)
