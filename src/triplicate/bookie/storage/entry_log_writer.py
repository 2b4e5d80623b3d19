"""Writes entry logs, one at a time. All methods block and belong on a worker.

The writer touches only the log that it fills; readers open files of their own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.entry_log_format import (
    MAX_RUN_BYTES,
    MAX_RUN_SPAN,
    SIZE,
    BlockInfo,
    encode_footer,
    encode_run,
    encode_states_block,
)
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, FileIdentity, encode_file_header
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.files import NO_SPACE, join, numbered_name
from triplicate.bookie.storage.entry_logs import SUFFIX
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.runtime import Disk, File

WRITE_BYTES = 1024 * 1024
"""Blocks are buffered up to this size, then written and synced. A single sync of a whole flush would occupy the disk for longer than
adds can wait whose journal shares it."""
BLOCKS_MAX = 50_000
"""Maximum number of blocks in a log. The footer lists each of them and is kept in memory until the log is finished."""


@dataclass(slots=True)
class _OpenLog:
    number: int
    directory: str
    file: File
    header: bytes
    end: int
    blocks: list[BlockInfo]
    synced_bytes: int = 0
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
            self.sizes[self._open.number] = self._open.synced_bytes = self._open.end
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
            if not log.synced_bytes:
                del self._paths[log.number]
                self._disk.delete(path)
                self._disk.sync_directory(log.directory)
                return
            file = self._disk.open(path)
            try:
                file.truncate(log.synced_bytes)
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
