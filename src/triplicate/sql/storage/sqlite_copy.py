"""Copying one SQLite file while it is read and written.

SQLite's backup reads from a connection that holds one read transaction. All pages and the position are therefore of one moment, although
other transactions commit meanwhile. Pages are copied unchanged, and implicit rowids stay; VACUUM INTO would assign new ones.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TypeVar

import apsw

from triplicate.errors import CorruptionError, Diverged, EnvironmentFault, TriplicateError
from triplicate.log import CHUNK_BYTES
from triplicate.runtime import File, Host, Worker
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, open_follower, open_reader, read_state

Result = TypeVar("Result")

OUTGOING = ".snapshot"
"""Suffix of the copy that is made for a snapshot."""
STEP_BYTES = CHUNK_BYTES
"""Bytes that one step of a backup copies."""
SIDE_FILES = ("-wal", "-shm", "-journal")
_SPARE_BYTES = 64 * 1024 * 1024
"""Bytes that must stay free on the disk beside a copy."""
_CHECK_STEPS = 100_000
_FINDINGS = 5


class CopyScope:
    """The worker that makes and reads one copy, and everything that is open on it.

    A cancelled function may still run on the worker. It therefore registers each file and connection that it opens in `opened`, and
    `aclose` closes them.

    Args:
        worker: used for nothing else; `aclose` ends it.
        source_path: the database's file.
        path: of the copy. Its folder exists.
    """

    def __init__(self, host: Host, worker: Worker, source_path: str, path: str) -> None:
        self.host = host
        self.source_path = source_path
        self.path = path
        self.opened = ExitStack()
        self.is_closing = False
        self._worker = worker

    async def run(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run on the worker. Raises EnvironmentFault when the disk or SQLite fails."""
        return await on_disk(self._worker, function, *arguments)

    async def aclose(self, *, keep: bool = False) -> None:
        """Close everything in `opened`, delete the copy unless it is kept, and end the worker."""
        self.is_closing = True
        try:
            await self.run(self._close, keep)
        except TriplicateError as error:
            self.host.trace("sql.leftover", file=os.path.basename(self.path), error=repr(error))
        await self._worker.close()

    def _close(self, keep: bool) -> None:
        self.opened.close()
        if not keep:
            delete_file(self.host, self.path)


class SqliteBackup:
    """A copy in progress, within one read transaction. Created by `begin`. All methods block.

    Attributes:
        state: the state of the copy.
        page_size: size of one page, bytes.
    """

    def __init__(
        self,
        scope: CopyScope,
        wal_limit_bytes: int,
        source: apsw.Connection,
        target: apsw.Connection,
        state: StoreState,
        reading: ExitStack,
    ) -> None:
        self.state = state
        self.page_size = int(source.pragma("page_size"))
        self._scope = scope
        self._wal_limit_bytes = wal_limit_bytes
        # SQLite overwrites the write-ahead log from its beginning and never shrinks it, so only growth is caused by the copy.
        self._wal_bytes = self._wal_size()
        self._backup = target.backup("main", source, "main")
        self._reading = reading

    @classmethod
    def begin(cls, scope: CopyScope, setup: ConnectionSetup | None, wal_limit_bytes: int) -> SqliteBackup:
        """Begin the read transaction, which fixes the content and position of the copy.

        Args:
            wal_limit_bytes: the copy is given up when the write-ahead log grows by more than this while it is made.

        Raises:
            EnvironmentFault: the disk has no room for the copy. Diverged: the database's file is marked as wrong.
        """
        delete_file(scope.host, scope.path)
        reading = scope.opened.enter_context(ExitStack())
        source = open_reader(scope.source_path, setup)
        reading.callback(source.close, True)
        source.execute("begin")
        state = read_state(source)
        if state.diverged is not None:
            raise Diverged(state.diverged)
        size_bytes = int(source.pragma("page_count")) * int(source.pragma("page_size"))
        check_room(scope.host, scope.path, size_bytes, "a copy of the database's file")
        target = apsw.Connection(scope.path)
        reading.callback(target.close, True)
        # The file exists for minutes, and is deleted as a leftover after a crash.
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", "off")
        return cls(scope, wal_limit_bytes, source, target, state, reading)

    def step(self) -> bool:
        """Copy up to `STEP_BYTES`. Returns True when all pages are copied.

        Raises:
            EnvironmentFault: the write-ahead log has grown too much.
        """
        self._check_wal()
        self._backup.step(max(STEP_BYTES // self.page_size, 1))
        self._scope.host.step_aside()
        return bool(self._backup.done)

    def _check_wal(self) -> None:
        """Check the growth of the write-ahead log. The read transaction keeps SQLite from reusing the log's file.

        Raises:
            EnvironmentFault: the log has grown by more than the limit.
        """
        size = self._wal_size()
        if size - self._wal_bytes > self._wal_limit_bytes:
            raise EnvironmentFault(
                f"the write-ahead log of {self._scope.source_path} grew to {size} bytes while the file was copied; raise "
                "node.snapshot_rate_bytes_per_s or node.snapshot_wal_limit_bytes"
            )

    def _wal_size(self) -> int:
        disk, path = self._scope.host.disk, f"{self._scope.source_path}-wal"
        if not disk.exists(path):
            return 0
        file = disk.open(path, readonly=True)
        try:
            return file.size()
        finally:
            file.close()

    def finish(self) -> None:
        """End the backup and its read transaction, after every page is copied."""
        self._backup.finish()
        self._reading.close()


class SqliteCopy:
    """A sound copy of a database's file. Implements `replica.StateCopy`. Created by `SqlSnapshots.copy`."""

    def __init__(self, scope: CopyScope, file: File, state: StoreState, page_size: int) -> None:
        self.position = state.position
        self.epoch = state.epoch
        self.size_bytes = file.size()
        self._scope = scope
        self._file = file
        self._page_size = page_size

    @classmethod
    def open(cls, scope: CopyScope, setup: ConnectionSetup | None, backup: SqliteBackup) -> SqliteCopy:
        """Check the copy that a backup has made, and open it. Blocks.

        Raises:
            CorruptionError: SQLite's quick check finds faults in the copy. EnvironmentFault: `scope` was closed during the check.
        """
        check_copy(scope, setup, backup.state.position)
        file = scope.host.disk.open(scope.path, readonly=True)
        scope.opened.callback(file.close)
        return cls(scope, file, backup.state, backup.page_size)

    @property
    def facts(self) -> Mapping[str, int | str]:
        return {"page_size": self._page_size, "sqlite": apsw.sqlite_lib_version()}

    async def read(self, offset: int, size: int) -> bytes:
        content = await self._scope.run(self._file.pread, size, offset)
        if not content:
            raise EnvironmentFault(f"{self._scope.path} ends at byte {offset}, although it had {self.size_bytes} bytes when it was opened")
        return content

    async def discard(self) -> None:
        await self._scope.aclose()


def check_copy(scope: CopyScope, setup: ConnectionSetup | None, position: int) -> None:
    """Check that the file of a finished backup is sound and has the position. Raises as `SqliteCopy.open`."""
    connection = open_follower(scope.path, setup)
    try:
        connection.set_progress_handler(lambda: scope.is_closing, _CHECK_STEPS)
        findings = quick_check(connection)
        state = read_state(connection)
    except apsw.InterruptError as error:
        raise EnvironmentFault("the copy for a snapshot was cancelled during its check") from error
    finally:
        connection.close(True)
    if findings:
        raise CorruptionError(f"the copy of {scope.source_path} is not sound and is not used for a snapshot: {'; '.join(findings)}")
    if state.position != position:
        raise CorruptionError(f"the copy of {scope.source_path} has position {state.position}; the backup began at position {position}")


def quick_check(connection: apsw.Connection) -> list[str]:
    """The first few findings of SQLite's quick check; empty for a sound file."""
    findings = [str(row[0]) for row in connection.execute(f"pragma quick_check({_FINDINGS})")]
    return [] if findings == ["ok"] else findings


async def on_disk(worker: Worker, function: Callable[..., Result], *arguments: object) -> Result:
    """Run on a worker. Raises EnvironmentFault when the disk or SQLite fails."""
    try:
        return await worker.run(function, *arguments)
    except (OSError, apsw.Error) as error:
        raise EnvironmentFault(f"{type(error).__name__}: {error}") from error


def delete_file(host: Host, path: str) -> None:
    """Delete a SQLite file that is not open, with SQLite's files beside it."""
    for suffix in (*SIDE_FILES, ""):
        if host.disk.exists(path + suffix):
            host.disk.delete(path + suffix)


def check_room(host: Host, path: str, size_bytes: int, purpose: str) -> None:
    """Check that the disk of a file has room for a copy and `_SPARE_BYTES`.

    Args:
        size_bytes: of the copy.
        purpose: the subject of the error text.

    Raises:
        EnvironmentFault: the disk lacks the room.
    """
    folder = os.path.dirname(path)
    free, _ = host.disk.free_space(folder)
    if free < size_bytes + _SPARE_BYTES:
        raise EnvironmentFault(
            f"{purpose} needs {size_bytes} bytes in {folder} and {_SPARE_BYTES} bytes to spare, but {free} are free: make room, or move "
            "this node's directory to a larger disk"
        )
