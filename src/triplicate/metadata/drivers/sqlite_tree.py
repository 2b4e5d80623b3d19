"""The metadata tree in one SQLite file, for several processes on one machine.

SQLite runs on one worker thread per session. A session is a row and a lock file (`sqlite_sessions`). Each session searches for dead ones
about once a second, and removes their ephemeral nodes. Watches poll SQLite's data version every 20 or 40 ms (`sqlite_poll`), but only while
there are watches. The poll runs on the loop; the worker compares the watched paths only after a write.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from triplicate.errors import ConfigError, ConnectionLost, MetadataError, SessionExpired
from triplicate.metadata.core.paths import check_data, check_path
from triplicate.metadata.core.tree import ANY_VERSION, CreateNode, SetData, Stat, TreeOperation
from triplicate.metadata.drivers.sqlite_poll import SqlitePoll
from triplicate.metadata.drivers.sqlite_sessions import HEARTBEAT_INTERVAL_S, SessionLock
from triplicate.metadata.drivers.sqlite_store import SqliteStore, Touched
from triplicate.metadata.drivers.watches import LocalWatch, WatchTable
from triplicate.runtime import Host, TaskScope, Worker, shielded, sleep

Result = TypeVar("Result")

LOOK_INTERVAL_S = 1.0


class _Abandoned(Exception):
    """The caller of this change was cancelled, and the change was not made."""


class SqliteTree:
    """One session with a SQLite file. Create it with `open`, after any fork."""

    def __init__(self, host: Host, session: _Session, workers: tuple[Worker, Worker], watch_interval_s: float = 0.0) -> None:
        self._host = host
        self._watch_interval_s = watch_interval_s
        self._store = session.store
        self._poll_connection = session.poll
        self._session_id = session.session_id
        self._lock = session.lock
        self._worker, self._beat_worker = workers
        self._process_id = os.getpid()
        self._watches = WatchTable()
        self._watched = asyncio.Event()
        self._arming: list[Awaitable[None]] = []
        self._over: SessionExpired | None = None
        self._closed = False
        self._scope = TaskScope(f"sqlite-tree-{session.session_id}", on_failure=self._task_failed)
        self._scope.spawn(self._beat(), name="beat")
        self._scope.spawn(self._remove_dead_sessions(), name="look")
        self._scope.spawn(self._poll(), name="poll")

    @classmethod
    async def open(cls, path: str, host: Host, *, watch_interval_s: float = 0.0, create: bool = True) -> SqliteTree:
        """Open the file, and begin a session.

        Args:
            path: absolute path of the file.
            watch_interval_s: least time between two checks for changes by other sessions, for the session's watches.
            create: make the file if it is missing.

        Raises:
            ConfigError: the path is not absolute, its directory is missing or not writable, or the file belongs to another program. Without
                `create`, also if there is no file, or an empty one.
            FormatError: the file was created by a later release. CorruptionError: the file is damaged.
        """
        if not os.path.isabs(path):
            raise ConfigError(f"the metadata file's path must be absolute, not {path!r}")
        worker = host.new_worker("metadata")
        opening = _Opening(path, host.clock.wall_us, create)
        try:
            session = await worker.run(opening.begin)
        except BaseException:
            # If this task is cancelled, the thread continues. It runs its jobs in order, so the clean-up runs after `begin`.
            await shielded(_after(worker.run(opening.abandon), worker.close))
            raise
        return cls(host, session, (worker, host.new_worker("metadata-beat")), watch_interval_s)

    @property
    def session_id(self) -> int:
        return self._session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        check_path(path + "0" if sequential else path)
        check_data(path, data)
        return await self._write(lambda store: store.create(path, data, ephemeral=ephemeral, sequential=sequential, parents=parents))

    async def get(self, path: str) -> tuple[bytes, Stat]:
        check_path(path)
        return await self._read(lambda store: store.get(path))

    async def exists(self, path: str) -> Stat | None:
        check_path(path)
        return await self._read(lambda store: store.exists(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        check_path(path)
        check_data(path, data)
        return await self._write(lambda store: store.set(path, data, version), data_of=path)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        check_path(path)
        await self._write(lambda store: store.delete(path, version))

    async def children(self, path: str) -> tuple[list[str], Stat]:
        check_path(path)
        return await self._read(lambda store: store.children(path))

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        for operation in operations:
            check_path(operation.path)
            if isinstance(operation, CreateNode | SetData):
                check_data(operation.path, operation.data)
        await self._write(lambda store: store.multi(operations))

    async def sync(self, path: str) -> None:
        """Every read sees what was committed before it. Only the session is checked."""
        await self.exists(path)

    def watch(self, path: str) -> LocalWatch:
        watch = self._watches.add(check_path(path))
        if self._over is None and not self._closed:
            # The worker runs its jobs in order: the state of the path is recorded before any read that the caller starts after this.
            self._arming.append(self._worker.run(self._store.arm, path))
            self._watched.set()
        return watch

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await shielded(self._close())

    async def _close(self) -> None:
        await self._scope.aclose()
        self._watches.fail(SessionExpired(f"session {self._session_id} was closed"))
        try:
            await self._await_arming()
            await self._worker.run(self._store.close_session)
        except MetadataError as error:
            # The lock is released in any case, so other sessions find this one dead and clean up.
            self._host.trace("metadata.session_left_behind", session_id=self._session_id, error=str(error))
        finally:
            # A heartbeat may still be running: its file must not be closed before it ends.
            await self._beat_worker.close()
            self._lock.release()
            # Only the last connection to the file moves the log into it, so the store is closed last.
            await self._worker.run(self._poll_connection.close)
            await self._worker.run(self._store.close)
            await self._worker.close()

    async def _read(self, function: Callable[[SqliteStore], Result]) -> Result:
        return await self._run(self._store.read, function)

    async def _write(self, function: Callable[[SqliteStore], Result], data_of: str = "") -> Result:
        """
        Args:
            data_of: the path whose data is the only change, or empty.
        """
        is_abandoned = False

        def unless_abandoned(store: SqliteStore) -> Result:
            # The job may have waited seconds for another writer, and would change a newer state.
            if is_abandoned:
                raise _Abandoned
            return function(store)

        try:
            return await self._run(lambda work: self._store.write(work, data_of), unless_abandoned)
        except asyncio.CancelledError:
            is_abandoned = True
            raise

    async def _run(
        self,
        method: Callable[[Callable[[SqliteStore], Result]], tuple[Result, Touched]],
        function: Callable[[SqliteStore], Result],
    ) -> Result:
        self._require_usable()
        running = self._worker.run(method, function)
        assert isinstance(running, asyncio.Future), "a worker answers with a future"
        try:
            ended: tuple[Result, Touched] = await asyncio.shield(running)
        except asyncio.CancelledError:
            # The thread continues, and watches on the paths that it changes must wake.
            running.add_done_callback(self._ended_late)
            raise
        except SessionExpired as error:
            self._expire(error)
            raise
        except ConnectionLost:
            self._watches.wake_all()
            raise
        result, touched = ended
        self._watches.wake(touched)
        return result

    def _ended_late(self, running: asyncio.Future[tuple[Result, Touched]]) -> None:
        """Called when an operation whose caller was cancelled ends. Wakes only the watches on the touched paths: there may be thousands."""
        if running.cancelled():
            return
        error = running.exception()
        if error is None:
            self._watches.wake(running.result()[1])
        elif isinstance(error, SessionExpired):
            self._expire(error)
        elif isinstance(error, ConnectionLost):
            self._watches.wake_all()
        # After any other error nothing was changed.

    def _require_usable(self) -> None:
        if os.getpid() != self._process_id:
            raise MetadataError("this metadata session was opened before a fork; open one in the child process")
        if self._closed:
            raise SessionExpired(f"session {self._session_id} was closed")
        if self._over is not None:
            raise SessionExpired(*self._over.args)

    def _expire(self, error: SessionExpired) -> None:
        if self._over is None:
            self._over = error
            self._watches.fail(error)
            self._host.trace("metadata.session_expired", session_id=self._session_id)

    def _task_failed(self, error: BaseException) -> None:
        """Expire the session after a failure of its own tasks: it cannot work without heartbeat and polling."""
        self._expire(SessionExpired(f"session {self._session_id} broke: {error!r}"))

    async def _beat(self) -> None:
        """Runs on its own thread, so that a long wait for another writer does not stop the heartbeat."""
        while True:
            await sleep(self._host.clock, HEARTBEAT_INTERVAL_S)
            try:
                await self._beat_worker.run(self._lock.beat)
            except OSError as error:
                self._host.trace("metadata.heartbeat_failed", session_id=self._session_id, error=str(error))

    async def _remove_dead_sessions(self) -> None:
        while self._over is None:
            await sleep(self._host.clock, LOOK_INTERVAL_S)
            try:
                self._watches.wake(await self._worker.run(self._store.remove_dead))
            except SessionExpired as error:
                self._expire(error)
            except (ConnectionLost, OSError) as error:
                self._watches.wake_all()
                self._host.trace("metadata.connection_lost", session_id=self._session_id, error=str(error))

    async def _poll(self) -> None:
        while self._over is None:
            if not len(self._watches):
                self._watched.clear()
                await self._watched.wait()
            version = await self._poll_connection.changed(self._host.clock, self._is_poll_due, self._watch_interval_s)
            try:
                await self._await_arming()
                changed = await self._worker.run(self._store.changed_paths, self._watches.paths())
            except SessionExpired as error:
                self._expire(error)
            except ConnectionLost:
                self._watches.wake_all()
            else:
                self._poll_connection.seen(version)
                self._watches.wake(changed)

    def _is_poll_due(self) -> bool:
        """Whether the poll has work without a write: to await the arming of watches, or to end because there are none."""
        return bool(self._arming) or not len(self._watches)

    async def _await_arming(self) -> None:
        """Wait until the states of the watched paths are recorded. Every awaitable is awaited, so that no failure is lost."""
        failure: MetadataError | None = None
        while self._arming:
            try:
                await self._arming.pop(0)
            except MetadataError as error:
                failure = error
        if failure is not None:
            raise failure


class _Session(NamedTuple):
    """An open session: its connections, and its lock."""

    store: SqliteStore
    poll: SqlitePoll
    lock: SessionLock
    session_id: int


class _Opening:
    """The steps of opening, run on the worker's thread, and their rollback."""

    def __init__(self, path: str, wall_us: Callable[[], int], create: bool) -> None:
        self._path = path
        self._wall_us = wall_us
        self._create = create
        self._store: SqliteStore | None = None
        self._poll: SqlitePoll | None = None
        self._lock: SessionLock | None = None

    def begin(self) -> _Session:
        store = self._store = SqliteStore(self._path, self._wall_us, create=self._create)
        try:
            lock = self._lock = SessionLock.acquire(store.lock_directory)
        except OSError as error:
            cure = "free space on its disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check that it is writable"
            raise ConfigError(f"session locks cannot be made in {store.lock_directory}: {error.strerror}; {cure}") from error
        poll = self._poll = store.open_poll()
        return _Session(store, poll, lock, store.open_session(lock.name))

    def abandon(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self._poll is not None:
            self._poll.close()
        if self._store is not None:
            self._store.close()


async def _after(first: Awaitable[None], then: Callable[[], Awaitable[None]]) -> None:
    await first
    await then()
