"""SQLite's files over the disk port: an apsw VFS, so that the simulator and the crash tests see every write and sync of the index.

SQLite keeps no journal of its own here, since its journals hold random numbers, and a simulation must repeat. Instead, a commit is one
record: the pages that a transaction changed are collected in memory until SQLite syncs, then written to ``<name>-commits`` with one
write and one sync. When that file has grown, its newest pages are copied into the database file, which is synced; then the file is cut.

When the database is opened, the whole records are read again; a torn record behind them was never reported as done. Then their pages are
copied, and a new file of commits replaces the old one: if a sync failed in an earlier process, a record or the end of the old file may
exist only in the operating system's memory, and nothing may be built on it. If the disk has no space for the new file, the pages that
were read are served, and the first commit tries again to replace the file, or fails.

``<name>-commits``, big-endian, records one after another: magic "TPIX", number of pages u32, commit number u64, CRC32C of these 16
bytes and all that follows u32; then per page its number u32 (0 is the first) and its 4096 bytes. Commit numbers grow by one.

Every page of the database file ends in a CRC32C of the rest of the page (in bytes that SQLite reserves for it), written on the way
out and checked on the way in. There is one connection, and the directory's lock file keeps others out, so nothing is locked here.
"""

from __future__ import annotations

import itertools
import struct

import apsw

from triplicate.bookie.core.checksum import crc32c
from triplicate.bookie.files import NO_SPACE
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, File

PAGE_BYTES = 4096
RESERVED_BYTES = 8
"""SQLite reserves multiples of 4 bytes at the end of every page; the checksum uses the first 4."""
COMMITS_BYTES_MAX = 512 * 1024
"""Size at which the file of commits is copied into the database. It bounds the memory for pages not yet copied."""
COMMITS_SUFFIX = "-commits"

_CRC = struct.Struct(">I4x")
_RECORD = struct.Struct(">4sIQ")
_RECORD_CRC = struct.Struct(">I")
_PAGE_NUMBER = struct.Struct(">I")
_MAGIC = b"TPIX"
_numbers = itertools.count(1)


class IndexVfs(apsw.VFS):
    """One database by the disk port. Unregistered by `unregister` when the index is closed."""

    def __init__(self, disk: Disk) -> None:
        # The name distinguishes file systems within one process; it never reaches the disk.
        self.vfs_name = f"triplicate-{next(_numbers)}"
        self._disk = disk
        self._failure: BaseException | None = None
        super().__init__(self.vfs_name, base="", maxpathname=4096)

    def pop_failure(self) -> BaseException | None:
        """The error that the disk port raised since the last call. SQLite itself reports only that something failed."""
        failure, self._failure = self._failure, None
        return failure

    def fail(self, error: BaseException) -> apsw.IOError:
        """Remember an error of the disk port and return the one for SQLite."""
        self._failure = error
        return apsw.IOError(str(error))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> IndexFile:  # type: ignore[override]
        if name is None or not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            raise apsw.CantOpenError("the index needs no file but the database")
        try:
            return IndexFile(self, self._disk, name.filename() if isinstance(name, apsw.URIFilename) else name)
        except BaseException as error:
            raise self.fail(error) from error

    def xDelete(self, name: str, sync_directory: bool) -> None:
        """SQLite checks only for journals, which do not exist."""

    def xAccess(self, name: str, flags: int) -> bool:
        return self._disk.exists(name)

    def xFullPathname(self, name: str) -> str:
        return name

    def xSleep(self, microseconds: int) -> int:
        return microseconds


class IndexFile:
    """The database file with its commits."""

    def __init__(self, vfs: IndexVfs, disk: Disk, path: str) -> None:
        self._vfs = vfs
        self._path = path
        self._disk = disk
        self._file = disk.open(path, create=True)
        self._committed: dict[int, bytes] = {}
        """Pages by number that are durable in the file of commits and not yet in the database file."""
        self._changed: dict[int, bytes] = {}
        """Pages by number that SQLite has written and not yet synced."""
        self._refused = False
        """The last commit failed, so SQLite writes the former pages back and syncs them, even for a read."""
        self._commit_number = 0
        self._commits_end = 0
        self._commits: File | None = None
        """None: the disk is full, and the commits of earlier processes are not secured yet."""
        self._load_commits()
        self._pages = max([self._file.size() // PAGE_BYTES, *(number + 1 for number in self._committed)])
        try:
            self._secure_commits()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise

    def _secure_commits(self) -> File:
        """Secure the commits of earlier processes; returns the file for further commits. May be retried."""
        try:
            self._copy_pages()
            self._commits = self._new_commits()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self._commits = self._old_commits()
        return self._commits

    def _load_commits(self) -> None:
        """Load the commits of earlier processes."""
        path = self._path + COMMITS_SUFFIX
        if not self._disk.exists(path):
            return
        commits = self._disk.open(path, readonly=True)
        try:
            size = commits.size()
            while (loaded := _read_commit(commits, self._commits_end, size)) is not None:
                number, pages, end = loaded
                if self._commit_number and number != self._commit_number + 1:
                    break
                self._commit_number, self._commits_end = number, end
                self._committed.update(pages)
        finally:
            commits.close()

    def _new_commits(self) -> File:
        """Replace the file of commits by an empty one. Its pages have been copied."""
        target = self._path + COMMITS_SUFFIX
        beside = target + ".new"
        self._disk.delete(beside)
        self._disk.open(beside, create=True, exclusive=True).close()
        self._disk.rename(beside, target)
        self._sync_names()
        self._commit_number = self._commits_end = 0
        return self._disk.open(target)

    def _old_commits(self) -> File:
        """Keep the file of commits on a disk without space for another: its content is written again in place."""
        commits = self._disk.open(self._path + COMMITS_SUFFIX, create=True)
        try:
            if commits.size() < self._commits_end:
                # The new file is in place, and only the sync of the directory found no space. The pages of the old one have been copied.
                self._commit_number = self._commits_end = 0
            if self._commits_end:
                commits.pwrite([commits.pread(self._commits_end, 0)], 0)
            commits.truncate(self._commits_end)
            commits.sync()
            self._sync_names()
        except OSError:
            commits.close()
            raise
        return commits

    def _sync_names(self) -> None:
        self._disk.sync_directory(self._path.rpartition("/")[0] or "/")

    def xRead(self, amount: int, offset: int) -> bytes:
        number, start = divmod(offset, PAGE_BYTES)
        try:
            page = self._changed.get(number) or self._kept(number)
        except BaseException as error:
            raise self._vfs.fail(error) from error
        return page if amount == PAGE_BYTES else page[start : start + amount]

    def _kept(self, number: int) -> bytes:
        """A page as the last commit left it."""
        return self._committed.get(number) or self._stored(number)

    def _stored(self, number: int) -> bytes:
        page = self._file.pread(PAGE_BYTES, number * PAGE_BYTES)
        if not page:
            return b""
        body = page[:-RESERVED_BYTES]
        if len(page) != PAGE_BYTES or _CRC.unpack_from(page, len(body))[0] != crc32c(body):
            raise CorruptionError(f"{self._path}: the page at byte {number * PAGE_BYTES} fails its checksum")
        return page

    def xWrite(self, data: bytes, offset: int) -> None:
        number, start = divmod(offset, PAGE_BYTES)
        if len(data) != PAGE_BYTES or start:
            raise self._vfs.fail(CorruptionError(f"{self._path}: SQLite writes {len(data)} bytes at {offset}, which is no page"))
        body = data[:-RESERVED_BYTES]
        self._changed[number] = body + _CRC.pack(crc32c(body))
        self._pages = max(self._pages, number + 1)

    def xTruncate(self, size: int) -> None:
        # Only a rolled-back transaction shrinks the file, before any of its pages became durable.
        self._pages = size // PAGE_BYTES
        self._changed = {number: page for number, page in self._changed.items() if number < self._pages}

    def xSync(self, flags: int) -> None:
        """Commit: everything written since the last one becomes durable together."""
        try:
            if self._refused:
                self._changed = {number: page for number, page in self._changed.items() if page != self._kept(number)}
            if not self._changed:
                return
            self._refused = True
            commits = self._commits or self._secure_commits()
            self._commit(commits)
            self._refused = False
            if self._commits_end > COMMITS_BYTES_MAX:
                self._empty_commits(commits)
        except BaseException as error:
            raise self._vfs.fail(error) from error

    def _commit(self, commits: File) -> None:
        parts: list[bytes] = []
        for number, page in self._changed.items():
            parts.append(_PAGE_NUMBER.pack(number))
            parts.append(page)
        head = _RECORD.pack(_MAGIC, len(self._changed), self._commit_number + 1)
        try:
            size = commits.pwrite([head, _RECORD_CRC.pack(crc32c(head, *parts)), *parts], self._commits_end)
            commits.sync()
        except OSError as error:
            if error.errno in NO_SPACE:
                self._undo_commit(commits)
            raise
        self._commit_number += 1
        self._commits_end += size
        self._committed.update(self._changed)
        self._changed = {}

    def _undo_commit(self, commits: File) -> None:
        """Remove the bytes of a commit that found no space. It was reported as failed, and must not be found complete after a crash."""
        try:
            commits.truncate(self._commits_end)
            commits.sync()
        except OSError:
            # The next commit overwrites it.
            return

    def _empty_commits(self, commits: File) -> None:
        try:
            self._copy_pages()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # The commit itself is durable and must not be undone; the next one tries again.
            return
        # Only now may the commits be removed. If a crash keeps them, they are copied again, which changes nothing.
        commits.truncate(0)
        commits.sync()
        self._commits_end = 0

    def _copy_pages(self) -> None:
        """Copy the pages into the database file, durably."""
        if not self._committed:
            return
        for number in sorted(self._committed):
            self._file.pwrite([self._committed[number]], number * PAGE_BYTES)
        self._file.sync()
        self._committed = {}

    def xFileSize(self) -> int:
        return self._pages * PAGE_BYTES

    def xLock(self, level: int) -> None:
        """See the module's text."""

    def xUnlock(self, level: int) -> None:
        """See the module's text."""

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, operation: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return PAGE_BYTES

    def xDeviceCharacteristics(self) -> int:
        return 0

    def xClose(self) -> None:
        self._file.close()
        if self._commits is not None:
            self._commits.close()


def _read_commit(file: File, offset: int, size: int) -> tuple[int, dict[int, bytes], int] | None:
    """(commit number, pages by number, end) of the whole record at `offset`, or None."""
    head = file.pread(_RECORD.size + _RECORD_CRC.size, offset)
    if len(head) < _RECORD.size + _RECORD_CRC.size:
        return None
    magic, count, number = _RECORD.unpack_from(head)
    length = count * (_PAGE_NUMBER.size + PAGE_BYTES)
    if magic != _MAGIC or offset + len(head) + length > size:
        return None
    body = file.pread(length, offset + len(head))
    if crc32c(head[: _RECORD.size], body) != _RECORD_CRC.unpack_from(head, _RECORD.size)[0]:
        return None
    step = _PAGE_NUMBER.size + PAGE_BYTES
    pages = {_PAGE_NUMBER.unpack_from(body, at)[0]: body[at + _PAGE_NUMBER.size : at + step] for at in range(0, length, step)}
    return number, pages, offset + len(head) + length
