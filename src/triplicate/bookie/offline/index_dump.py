"""Prints the rows of a bookie's index. Reads only; the rows are read in pages.

The index of a running bookie changes beneath a reader. It is copied first, and the copy is repeated until it is of one moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from triplicate.bookie.core.checksum import crc32c_of
from triplicate.bookie.core.entry_log_format import BlockInfo
from triplicate.bookie.directories import LOCK_NAME
from triplicate.bookie.files import join
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine, LineKind, damage_line, refuse_foreign_file
from triplicate.bookie.offline.index_backup import ReadOnlyIndex
from triplicate.bookie.offline.journal_dump import state_line
from triplicate.bookie.storage.index import PAGE_OF_IDS, Index
from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX
from triplicate.errors import CorruptionError, EnvironmentFault, FormatError
from triplicate.runtime import Disk, File

MAGIC = b"SQLite format 3\0"
CACHE_BYTES = 4 * 1024 * 1024
PIECE_BYTES = 1024 * 1024
COPIES_MAX = 5
FACTS = ("version", "flush", "flush_log", "complete")


def is_in_use(disk: Disk, path: str) -> bool:
    """Whether a running bookie may use the directory of this file. It counts as used if its lock cannot be opened."""
    lock = join(path.rpartition("/")[0] or ".", LOCK_NAME)
    if not disk.exists(lock):
        return False
    try:
        disk.lock(lock)()
    except OSError:
        # Held by the bookie; or the caller may only read, and a copy is right in any case.
        return True
    return False


def copy_index(disk: Disk, path: str, target: str) -> None:
    """Copy the index of a running bookie to `target`, as it was at one moment.

    The commits are copied last. If none was removed meanwhile, they hold every page that the bookie may have changed in the database file
    during its copy. Where there were none at the beginning, the database file is read again, and must be the same.

    Raises:
        EnvironmentFault: the index changed during each of `COPIES_MAX` copies. OSError.
    """
    for _ in range(COPIES_MAX):
        before = _checksum(disk, path + COMMITS_SUFFIX, None)
        copied = _copy(disk, path, target)
        _copy(disk, path + COMMITS_SUFFIX, target + COMMITS_SUFFIX)
        kept = _checksum(disk, target + COMMITS_SUFFIX, before.length) == before
        if kept and (before.length or _checksum(disk, path, None) == copied):
            return
    raise EnvironmentFault(f"{path}: the index changed during each of {COPIES_MAX} copies: stop the bookie, or try again later")


def dump_index(disk: Disk, path: str, choice: DumpChoice) -> Iterator[DumpLine]:
    """The rows of an index that no process changes: its facts, the logs, and each ledger with its runs.

    Raises:
        FormatError: of an Apache bookie. CorruptionError: it is no index, or cannot be read at all. OSError.
    """
    file = disk.open(path, readonly=True)
    try:
        head = file.pread(len(MAGIC), 0)
    finally:
        file.close()
    refuse_foreign_file(head, path)
    # An index whose pages are all in the file of commits is an empty file.
    if head and head != MAGIC:
        raise CorruptionError(f"{path}: no index of a bookie: a SQLite database is expected")
    if not head and not disk.exists(path + COMMITS_SUFFIX):
        raise CorruptionError(f"{path}: an empty file is no index of a bookie")
    with ReadOnlyIndex(disk, path, CACHE_BYTES) as index:
        yield from _IndexDump(index, choice).lines()


class _IndexDump:
    def __init__(self, index: Index, choice: DumpChoice) -> None:
        self._index = index
        self._choice = choice

    def lines(self) -> Iterator[DumpLine]:
        index, choice = self._index, self._choice
        if not choice.is_narrowed and choice.log is None:
            yield DumpLine(LineKind.FACT, None, {name: index.fact(name) for name in FACTS})
            yield from self._logs()
        try:
            yield from self._ledgers()
            yield from self._notes()
        except CorruptionError as error:
            yield damage_line(None, None, f"{error}; `triplicate bookie rebuild-index` makes a new index of a stopped bookie")

    def _logs(self) -> Iterator[DumpLine]:
        try:
            for log, size in self._index.log_sizes().items():
                yield DumpLine(LineKind.LOG, None, {"log": log, "durable_bytes": size})
        except CorruptionError as error:
            yield damage_line(None, None, str(error))

    def _ledgers(self) -> Iterator[DumpLine]:
        choice = self._choice
        if choice.ledger_id is not None:
            yield from self._ledger(choice.ledger_id)
            return
        after = -1
        while page := self._index.ledger_ids(after):
            for ledger_id in page:
                yield from self._ledger(ledger_id)
            after = page[-1]

    def _ledger(self, ledger_id: int) -> Iterator[DumpLine]:
        """The rows of one ledger. Damage in them does not end the dump."""
        choice = self._choice
        try:
            found = self._index.ledger(ledger_id)
            if found is None:
                return
            state, last = found
            if choice.log is None and not choice.is_by_entry:
                yield state_line(None, state, LineKind.LEDGER, last_entry=last)
            after: tuple[int, BlockInfo] | None = None
            while page := self._index.runs_behind(ledger_id, PAGE_OF_IDS, after):
                for log, run in page:
                    if choice.log in (None, log) and choice.holds(ledger_id, run.first, run.last):
                        yield _run_line(log, run)
                after = page[-1]
        except (CorruptionError, FormatError) as error:
            yield damage_line(None, None, f"ledger {ledger_id}: {error}")

    def _notes(self) -> Iterator[DumpLine]:
        """Deleted ledgers that stay fenced, and ledgers without metadata."""
        choice = self._choice
        if choice.log is not None or choice.is_by_entry:
            return
        if choice.ledger_id is not None:
            tombstone = self._index.tombstone(choice.ledger_id)
            if tombstone is not None:
                yield state_line(None, tombstone, LineKind.DELETED)
        else:
            yield DumpLine(LineKind.DELETED, None, {"ledgers": self._index.tombstones()})
        for ledger_id, since_ms in self._index.missing().items():
            if choice.holds_ledger(ledger_id):
                yield DumpLine(LineKind.MISSING, None, {"ledger": ledger_id, "since_ms": since_ms})


def _run_line(log: int, run: BlockInfo) -> DumpLine:
    facts = {
        "ledger": run.ledger_id,
        "first": run.first,
        "last": run.last,
        "count": run.count,
        "log": log,
        "position": run.offset,
        "flush": run.flush_number,
        "body_bytes": run.body_bytes,
    }
    return DumpLine(LineKind.RUN, None, facts)


class _Checksum(NamedTuple):
    """The checksum of the first `length` bytes of a file."""

    length: int
    crc: int


def _checksum(disk: Disk, path: str, length: int | None) -> _Checksum:
    """Of the first `length` bytes, or of the whole file. A file that does not exist counts as empty."""
    return _read_pieces(disk, path, length, None)


def _copy(disk: Disk, path: str, target: str) -> _Checksum:
    """Copy a file; returns the checksum of what was copied."""
    copy = disk.open(target, create=True)
    try:
        copy.truncate(0)
        return _read_pieces(disk, path, None, copy)
    finally:
        copy.close()


def _read_pieces(disk: Disk, path: str, length: int | None, copy: File | None) -> _Checksum:
    if not disk.exists(path):
        return _Checksum(0, 0)
    file = disk.open(path, readonly=True)
    try:
        size = file.size() if length is None else min(length, file.size())
        value, offset = 0, 0
        while offset < size and (piece := file.pread(min(PIECE_BYTES, size - offset), offset)):
            value = crc32c_of((piece,), value)
            if copy is not None:
                copy.append([piece])
            offset += len(piece)
        return _Checksum(offset, value)
    finally:
        file.close()
