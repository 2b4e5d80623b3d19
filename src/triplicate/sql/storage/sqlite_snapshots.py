"""Snapshots of one SQLite copy: copying the file while it is read and written, and replacing it by another.

SQLite's backup makes the copy from a connection that holds one read transaction. So all pages and the position are of one moment,
also while others commit. Pages are copied unchanged and implicit rowids stay; VACUUM INTO would assign new ones. The files lie
beside the database's file. Only files that no connection has open are accessed through the disk port.
"""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol, TypeVar

import apsw

from triplicate.errors import CorruptionError, Diverged, EnvironmentFault, SnapshotDamaged, TriplicateError
from triplicate.log import CHUNK_BYTES, Snapshot, SnapshotHeader
from triplicate.runtime import File, Host, Worker, fault_point, shielded, sleep
from triplicate.sql.storage.applier import LOCAL_FAULTS
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, open_follower, open_reader, open_store, read_state

Result = TypeVar("Result")

MACHINE = "sql"
CONTENT = "sqlite"
OUTGOING, INCOMING, REPLACED = ".snapshot", ".restore", ".replaced"
"""Suffixes of files beside the copy: a snapshot that is being made, one that is being loaded, and the file that it replaced."""
_SIDE_FILES = ("-wal", "-shm", "-journal")
_SPARE_BYTES = 64 * 1024 * 1024
"""Bytes that must stay free on the disk beside a copy."""
_STEP_BYTES = CHUNK_BYTES
_CHECK_STEPS = 100_000
_FINDINGS = 5


def remove_leftovers(host: Host, path: str) -> None:
    """Delete the files that an interrupted snapshot or restore left beside a copy. Blocks; no snapshot or restore may be running."""
    for suffix in (OUTGOING, INCOMING, REPLACED):
        _delete(host, path + suffix)


class CopyOwner(Protocol):
    """The part of a database that its snapshots use."""

    @property
    def path(self) -> str: ...

    @property
    def position(self) -> int: ...

    async def replace(self, swap: Callable[[], None]) -> int:
        """Close the file, run `swap` on a worker, and open the file that is there then; its position."""


class SqlSnapshots:
    """Implements `replica.SnapshotMachine` for one database on this node.

    Args:
        identity: 16 bytes; copies of another database are refused.
        wal_limit_bytes: a copy is given up when the write-ahead log grows by more than this meanwhile.
    """

    machine = MACHINE
    content = CONTENT

    def __init__(
        self, host: Host, owner: CopyOwner, name: str, identity: bytes, setup: ConnectionSetup | None, wal_limit_bytes: int
    ) -> None:
        self._host = host
        self._owner = owner
        self._name = name
        self._identity = identity
        self._setup = setup
        self._wal_limit_bytes = wal_limit_bytes
        self._made: SqliteCopy | None = None

    @property
    def holds_wal(self) -> bool:
        """Whether a copy is being made, so that the write-ahead log cannot be emptied."""
        return self._made is not None and self._made.holds_wal

    @property
    def identity(self) -> str:
        return self._identity.hex()

    @property
    def position(self) -> int:
        return self._owner.position

    # Copying.

    async def copy(self, rate_bytes_per_s: int) -> SqliteCopy:
        """A consistent copy of the file. Readers, the applier and the leader's writer continue meanwhile.

        Raises:
            EnvironmentFault: no room on the disk, or the write-ahead log grew beyond its limit. Diverged: this copy is known to be wrong.
            CorruptionError: SQLite's quick check finds faults in the copy.
        """
        worker = self._host.new_worker(f"sql-{self._name}-snapshot")
        made = self._made = SqliteCopy(self._host, worker, self._owner.path, self._setup, self._wal_limit_bytes)
        try:
            await made.make(rate_bytes_per_s)
        except BaseException:
            await shielded(made.discard())
            raise
        return made

    # Restoring.

    @fault_point("sql.restore")
    async def restore(self, snapshot: Snapshot, header: SnapshotHeader, chunks: AsyncIterator[memoryview]) -> int:
        """Replace the local copy by a snapshot's content; its position.

        The content is written to a file beside, checked, and renamed. A crash leaves one of the two files
        complete, or none: then the node begins with an empty copy and loads the snapshot again.

        Raises:
            SnapshotDamaged: the content is no sound copy of this database. EnvironmentFault: the disk failed, or has no room.
            FormatError: a later release wrote it. Also the errors of `chunks`.
        """
        worker = self._host.new_worker(f"sql-{self._name}-restore")
        path = self._owner.path + INCOMING
        try:
            await _on_disk(worker, self._prepare, path, snapshot.size_bytes)
            file = await _on_disk(worker, self._host.disk.open, path)
            try:
                offset = 0
                async for content in chunks:
                    offset += await _on_disk(worker, file.pwrite, [content], offset)
                await _on_disk(worker, file.sync)
            finally:
                await shielded(_closed(worker, file))
            await _on_disk(worker, self._check, path, snapshot, header)
            return await self._owner.replace(self._swap)
        finally:
            await shielded(self._end(worker, path))

    def _prepare(self, path: str, size_bytes: int) -> None:
        _delete(self._host, path)
        _check_room(self._host, self._owner.path, size_bytes, f"a snapshot of database {self._name!r}")
        self._host.disk.open(path, create=True).close()

    async def _end(self, worker: Worker, path: str) -> None:
        try:
            await worker.run(_delete, self._host, path)
        except OSError as error:
            self._host.trace("sql.leftover", database=self._name, error=repr(error))
        await worker.close()

    def _check(self, path: str, snapshot: Snapshot, header: SnapshotHeader) -> None:
        """Check that a restored file is a sound copy of this database.

        Raises:
            SnapshotDamaged: the file has the listed digest and is not sound, so the snapshot is at fault. EnvironmentFault: the file does
                not have the listed digest, so the disk is at fault.
        """
        try:
            state = self._examine(path)
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"{path} cannot be checked: {error}") from error
        except (apsw.Error, ValueError, CorruptionError) as error:
            if _digest_of_file(self._host, path) != snapshot.digest:
                raise EnvironmentFault(f"{path} does not hold what was written to it: {error}") from error
            raise SnapshotDamaged(f"snapshot {snapshot.snapshot_id} holds no sound copy of database {self._name!r}: {error}") from error
        if (state.position, state.epoch, state.diverged) != (snapshot.position, header.epoch, None):
            raise SnapshotDamaged(
                f"snapshot {snapshot.snapshot_id} is listed at position {snapshot.position}, epoch {header.epoch}; its content stands at "
                f"{state.position}, epoch {state.epoch}{', diverged' if state.diverged else ''}"
            )

    def _examine(self, path: str) -> StoreState:
        """The state of a sound file of this database. Raises ValueError, CorruptionError, apsw.Error, FormatError."""
        connection = open_follower(path, self._setup)
        try:
            findings = quick_check(connection)
            if findings:
                raise CorruptionError(f"SQLite's quick check says: {'; '.join(findings)}")
        finally:
            connection.close(True)
        open_store(path, self._identity)
        connection = open_follower(path, self._setup)
        try:
            return read_state(connection)
        finally:
            connection.close(True)

    def _swap(self) -> None:
        """Rename the restored file into place. The old one is not open.

        The old write-ahead log is deleted before the rename: SQLite would apply it to the new file.
        """
        disk, path = self._host.disk, self._owner.path
        folder = os.path.dirname(path)
        file = disk.open(path + INCOMING)
        try:
            file.sync()
        finally:
            file.close()
        _delete(self._host, path + REPLACED)
        if disk.exists(path):
            disk.rename(path, path + REPLACED)
        for suffix in _SIDE_FILES:
            if disk.exists(path + suffix):
                disk.delete(path + suffix)
        disk.sync_directory(folder)
        disk.rename(path + INCOMING, path)
        disk.sync_directory(folder)
        _delete(self._host, path + REPLACED)


class SqliteCopy:
    """A copy of a database's file. Implements `replica.StateCopy`. Made by `SqlSnapshots.copy`.

    Methods without ``async`` run on its worker.
    """

    def __init__(self, host: Host, worker: Worker, path: str, setup: ConnectionSetup | None, wal_limit_bytes: int) -> None:
        self._host = host
        self._worker = worker
        self._source_path = path
        self._path = path + OUTGOING
        self._setup = setup
        self._wal_limit_bytes = wal_limit_bytes
        self._source: apsw.Connection | None = None
        self._target: apsw.Connection | None = None
        self._file: File | None = None
        self._stopped = False
        self._wal_bytes = 0
        """Size of the write-ahead log's file at the begin of the copy."""
        self._page_size = 0
        self.position = 0
        self.epoch = 0
        self.size_bytes = 0

    @property
    def holds_wal(self) -> bool:
        """Whether the read transaction is open."""
        return self._source is not None

    @property
    def facts(self) -> Mapping[str, int | str]:
        return {"page_size": self._page_size, "sqlite": apsw.sqlite_lib_version()}

    @fault_point("sql.copy")
    async def make(self, rate_bytes_per_s: int) -> None:
        """Copy the file; `position`, `epoch` and `size_bytes` are known afterwards. Raises as `SqlSnapshots.copy`."""
        clock = self._host.clock
        await self._run(self._begin)
        due = clock.monotonic()
        while not await self._run(self._step):
            due = max(due, clock.monotonic() - 1.0) + (_STEP_BYTES / rate_bytes_per_s if rate_bytes_per_s > 0 else 0.0)
            await sleep(clock, max(due - clock.monotonic(), 0.0))
        await self._run(self._finish)

    async def read(self, offset: int, size: int) -> bytes:
        content = await self._run(self._pread, size, offset)
        if not content:
            raise EnvironmentFault(f"{self._path} ends at {offset}; it has {self.size_bytes} bytes")
        return content

    async def discard(self) -> None:
        self._stopped = True
        try:
            await self._run(self._close)
        except TriplicateError as error:
            self._host.trace("sql.leftover", file=os.path.basename(self._path), error=repr(error))
        await self._worker.close()

    async def _run(self, function: Callable[..., Result], *arguments: object) -> Result:
        return await _on_disk(self._worker, function, *arguments)

    def _begin(self) -> None:
        """Begin the read transaction, which fixes the content and position of the copy."""
        _delete(self._host, self._path)
        source = self._source = open_reader(self._source_path, self._setup)
        # SQLite overwrites the file from its beginning and never shrinks it. Only its growth is caused by the copy.
        self._wal_bytes = self._wal_size()
        source.execute("begin")
        self._read_position(source)
        self._page_size = int(source.pragma("page_size"))
        _check_room(self._host, self._source_path, int(source.pragma("page_count")) * self._page_size, "the copy for a snapshot")
        target = self._target = apsw.Connection(self._path)
        # The file exists for minutes, and is deleted as a leftover after a crash.
        target.execute("pragma journal_mode = off; pragma synchronous = off")
        self._backup = target.backup("main", source, "main")

    def _read_position(self, source: apsw.Connection) -> None:
        """The state of the copy, read in its transaction."""
        state = read_state(source)
        if state.diverged is not None:
            raise Diverged(state.diverged)
        self.position, self.epoch = state.position, state.epoch

    def _step(self) -> bool:
        """Copy some pages; True when all are copied."""
        if self._stopped:
            raise EnvironmentFault("the copy for a snapshot was given up")
        self._check_wal()
        self._backup.step(max(_STEP_BYTES // self._page_size, 1))
        self._host.step_aside()
        return bool(self._backup.done)

    def _check_wal(self) -> None:
        """Give the copy up when the write-ahead log has grown too much. The read transaction keeps SQLite from reusing the log's file.

        Raises:
            EnvironmentFault: it has.
        """
        size = self._wal_size()
        if size - self._wal_bytes > self._wal_limit_bytes:
            raise EnvironmentFault(
                f"the write-ahead log of {self._source_path} grew to {size} bytes while the file was copied: raise "
                "node.snapshot_rate_bytes_per_s or node.snapshot_wal_limit_bytes"
            )

    def _wal_size(self) -> int:
        path = f"{self._source_path}-wal"
        if not self._host.disk.exists(path):
            return 0
        file = self._host.disk.open(path, readonly=True)
        try:
            return file.size()
        finally:
            file.close()

    def _finish(self) -> None:
        self._backup.finish()
        self._let_go()
        self._verify()
        file = self._file = self._host.disk.open(self._path, readonly=True)
        self.size_bytes = file.size()

    def _verify(self) -> None:
        """Check that the copy is sound."""
        connection = open_follower(self._path, self._setup)
        try:
            connection.set_progress_handler(lambda: self._stopped, _CHECK_STEPS)
            findings = quick_check(connection)
            state = read_state(connection)
        except apsw.InterruptError as error:
            raise EnvironmentFault("the copy for a snapshot was given up") from error
        finally:
            connection.close(True)
        if findings:
            raise CorruptionError(f"the copy of {self._source_path} is not sound and makes no snapshot: {'; '.join(findings)}")
        if state.position != self.position:
            raise CorruptionError(f"the copy of {self._source_path} stands at {state.position}; it was taken at {self.position}")

    def _pread(self, size: int, offset: int) -> bytes:
        assert self._file is not None, "the copy is read after it was taken"
        return self._file.pread(size, offset)

    def _let_go(self) -> None:
        """End the read transaction and close both connections."""
        source, self._source = self._source, None
        target, self._target = self._target, None
        for connection in (target, source):
            if connection is not None:
                connection.close(True)

    def _close(self) -> None:
        self._let_go()
        file, self._file = self._file, None
        if file is not None:
            file.close()
        _delete(self._host, self._path)


def quick_check(connection: apsw.Connection) -> list[str]:
    """The first few findings of SQLite's quick check; empty for a sound file."""
    found = [str(row[0]) for row in connection.execute(f"pragma quick_check({_FINDINGS})")]
    return [] if found == ["ok"] else found


async def _on_disk(worker: Worker, function: Callable[..., Result], *arguments: object) -> Result:
    """Run on a worker. Raises EnvironmentFault when the disk or SQLite fails."""
    try:
        return await worker.run(function, *arguments)
    except (OSError, apsw.Error) as error:
        raise EnvironmentFault(f"{type(error).__name__}: {error}") from error


async def _closed(worker: Worker, file: File) -> None:
    await worker.run(file.close)


def _delete(host: Host, path: str) -> None:
    """Delete a SQLite file that is not open, with SQLite's files beside it."""
    for suffix in (*_SIDE_FILES, ""):
        if host.disk.exists(path + suffix):
            host.disk.delete(path + suffix)


def _check_room(host: Host, path: str, size_bytes: int, what: str) -> None:
    folder = os.path.dirname(path)
    free, _ = host.disk.free_space(folder)
    if free < size_bytes + _SPARE_BYTES:
        raise EnvironmentFault(
            f"{what} needs {size_bytes} bytes in {folder} and {_SPARE_BYTES} to spare, {free} are free: make room, or move this node's "
            "directory to a larger disk"
        )


def _digest_of_file(host: Host, path: str) -> str:
    digest, offset = hashlib.sha256(), 0
    file = host.disk.open(path, readonly=True)
    try:
        while content := file.pread(CHUNK_BYTES, offset):
            digest.update(content)
            offset += len(content)
    finally:
        file.close()
    return f"sha256:{digest.hexdigest()}"
