"""Snapshots of one SQLite copy: copying the file, and replacing it by another.

The files of a snapshot are in the folder of the database's file. The disk port accesses only files that no connection has open.
"""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import apsw

from triplicate.errors import CorruptionError, EnvironmentFault, SnapshotDamaged
from triplicate.log import CHUNK_BYTES, Snapshot, SnapshotHeader
from triplicate.runtime import File, Host, RateLimiter, Worker, fault_point, shielded
from triplicate.sql.storage.applier import LOCAL_FAULTS
from triplicate.sql.storage.sqlite_copy import (
    OUTGOING,
    SIDE_FILES,
    STEP_BYTES,
    CopyScope,
    SqliteBackup,
    SqliteCopy,
    check_room,
    delete_file,
    on_disk,
    quick_check,
)
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, open_follower, open_store, read_state

MACHINE = "sql"
CONTENT = "sqlite"
INCOMING, REPLACED = ".restore", ".replaced"
"""Suffixes of a snapshot that is being loaded, and of the file that it replaces."""
CATCH_UP_S = 1.0
"""After slow steps, a copy may exceed its rate until it has made up for this many seconds."""


def remove_leftovers(host: Host, path: str) -> None:
    """Delete the files that an interrupted snapshot or restore left beside a copy. Blocks; no snapshot or restore may be running."""
    for suffix in (OUTGOING, INCOMING, REPLACED):
        delete_file(host, path + suffix)


class CopyOwner(Protocol):
    """The part of a database that its snapshots use."""

    @property
    def path(self) -> str: ...

    @property
    def position(self) -> int: ...

    async def replace(self, swap: Callable[[], None]) -> int:
        """Close the file, call `swap` on a worker, and open the file that `swap` has put in its place. Returns its position."""


class SqlSnapshots:
    """Implements `replica.SnapshotMachine` for one database on this node.

    Args:
        name: of the database. identity: its id, 16 bytes; snapshots of another database are refused.
        setup: called on each connection. wal_limit_bytes: see `SqliteBackup.begin`.
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
        self._backups = 0
        """Backups that read the file."""

    @property
    def holds_wal(self) -> bool:
        """Whether a backup reads the file; SQLite cannot empty the write-ahead log then."""
        return self._backups > 0

    @property
    def identity(self) -> str:
        return self._identity.hex()

    @property
    def position(self) -> int:
        return self._owner.position

    # Copying.

    async def copy(self, rate_bytes_per_s: int) -> SqliteCopy:
        """Make a consistent copy of the file. Readers, the applier and the leader's writer continue meanwhile.

        Args:
            rate_bytes_per_s: the rate limit; 0 for none.

        Raises:
            EnvironmentFault: the disk has no room, or the write-ahead log grew beyond its limit. Diverged: this copy is marked as wrong.
            CorruptionError: SQLite's quick check finds faults in the copy.
        """
        scope = self._scope(self._owner.path + OUTGOING)
        try:
            backup = await self._back_up(scope, rate_bytes_per_s, None)
            assert backup is not None, "any position will do"
            return await scope.run(SqliteCopy.open, scope, self._setup, backup)
        except BaseException:
            await shielded(scope.aclose())
            raise

    async def copy_to(self, path: str, latest: int | None) -> bool:
        """Copy the file as it is to another path, whose folder exists. The copy is not checked. Returns False, and leaves no file, if its
        position would be later than `latest`.

        Raises:
            As `copy`, apart from CorruptionError.
        """
        scope = self._scope(path)
        is_copied = False
        try:
            is_copied = await self._back_up(scope, 0, latest) is not None
            return is_copied
        finally:
            await shielded(scope.aclose(keep=is_copied))

    def _scope(self, path: str) -> CopyScope:
        return CopyScope(self._host, self._host.new_worker(f"sql-{self._name}-snapshot"), self._owner.path, path)

    @fault_point("sql.copy")
    async def _back_up(self, scope: CopyScope, rate_bytes_per_s: int, latest: int | None) -> SqliteBackup | None:
        """Copy all pages and end the read transaction. After an error, closing `scope` ends it. None, if the position of the copy would be
        later than `latest`."""
        self._backups += 1
        try:
            backup = await scope.run(SqliteBackup.begin, scope, self._setup, self._wal_limit_bytes)
            if latest is not None and backup.state.position > latest:
                return None
            rate = RateLimiter(self._host.clock, rate_bytes_per_s, CATCH_UP_S)
            while not await scope.run(backup.step):
                await rate.admit(STEP_BYTES)
            await scope.run(backup.finish)
            return backup
        finally:
            self._backups -= 1

    # Restoring.

    @fault_point("sql.restore")
    async def restore(self, snapshot: Snapshot, header: SnapshotHeader, chunks: AsyncIterator[memoryview]) -> int:
        """Replace the local copy by a snapshot's content. Returns its position.

        The content is written to another file, checked, and renamed. After a crash, one of the two files is complete, or neither has the
        database's name. In the second case the node begins with an empty copy and loads the snapshot again.

        Raises:
            SnapshotDamaged: the content is not a sound copy of this database. EnvironmentFault: the disk failed, or has no room.
            FormatError: a later release wrote the content. Also the errors of `chunks`.
        """
        worker = self._host.new_worker(f"sql-{self._name}-restore")
        path = self._owner.path + INCOMING
        try:
            await on_disk(worker, self._prepare, path, snapshot.size_bytes)
            file = await on_disk(worker, self._host.disk.open, path)
            try:
                offset = 0
                async for content in chunks:
                    offset += await on_disk(worker, file.pwrite, [content], offset)
                await on_disk(worker, file.sync)
            finally:
                await shielded(_close_file(worker, file))
            await on_disk(worker, self._check, path, snapshot, header)
            return await self._owner.replace(self._swap)
        finally:
            await shielded(self._remove_incoming(worker, path))

    def _prepare(self, path: str, size_bytes: int) -> None:
        delete_file(self._host, path)
        check_room(self._host, self._owner.path, size_bytes, f"a snapshot of database {self._name!r}")
        self._host.disk.open(path, create=True).close()

    async def _remove_incoming(self, worker: Worker, path: str) -> None:
        try:
            await worker.run(delete_file, self._host, path)
        except OSError as error:
            self._host.trace("sql.leftover", database=self._name, error=repr(error))
        await worker.close()

    def _check(self, path: str, snapshot: Snapshot, header: SnapshotHeader) -> None:
        """Check that a restored file is a sound copy of this database.

        Raises:
            SnapshotDamaged: the file has the listed digest and is not sound; the snapshot is at fault. EnvironmentFault: the file does not
                have the listed digest; the disk is at fault.
        """
        try:
            state = self._examine(path)
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"{path} cannot be checked: {error}") from error
        except (apsw.Error, ValueError, CorruptionError) as error:
            if _digest_of_file(self._host, path) != snapshot.digest:
                raise EnvironmentFault(f"{path} does not hold the bytes that were written to it: {error}") from error
            raise SnapshotDamaged(f"snapshot {snapshot.snapshot_id} is not a sound copy of database {self._name!r}: {error}") from error
        if (state.position, state.epoch, state.diverged) != (snapshot.position, header.epoch, None):
            raise SnapshotDamaged(
                f"snapshot {snapshot.snapshot_id} is listed at position {snapshot.position}, epoch {header.epoch}; its content has "
                f"position {state.position}, epoch {state.epoch}{', diverged' if state.diverged else ''}"
            )

    def _examine(self, path: str) -> StoreState:
        """The state of a sound file of this database. Raises ValueError, CorruptionError, apsw.Error, FormatError."""
        connection = open_follower(path, self._setup)
        try:
            findings = quick_check(connection)
            if findings:
                raise CorruptionError(f"SQLite's quick check finds: {'; '.join(findings)}")
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
        delete_file(self._host, path + REPLACED)
        if disk.exists(path):
            disk.rename(path, path + REPLACED)
        for suffix in SIDE_FILES:
            if disk.exists(path + suffix):
                disk.delete(path + suffix)
        disk.sync_directory(folder)
        disk.rename(path + INCOMING, path)
        disk.sync_directory(folder)
        delete_file(self._host, path + REPLACED)


async def _close_file(worker: Worker, file: File) -> None:
    await worker.run(file.close)


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
