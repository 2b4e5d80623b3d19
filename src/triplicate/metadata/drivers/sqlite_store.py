"""The metadata tree in one SQLite file: the part that runs on the driver's worker thread.

Every change is one transaction, durable when it returns (WAL, synchronous FULL: a created ledger survives a power failure). The data of
ephemeral nodes, which end with their sessions, is not synced.
Only this module and `sqlite_poll` may open the file: POSIX locks are lost when another SQLite library such as Python's own, or a plain
open and close, touches it in the same process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import apsw

from triplicate.errors import (
    ArgumentError,
    BadVersion,
    ConfigError,
    ConnectionLost,
    CorruptionError,
    FormatError,
    MetadataError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
)
from triplicate.metadata.core.paths import ancestors_of, name_of, parent_of, sequence_suffix
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, CreateNode, DeleteNode, SetData, Stat, TreeOperation
from triplicate.metadata.drivers.sqlite_poll import SqlitePoll
from triplicate.metadata.drivers.sqlite_sessions import boot_seconds, is_dead, pause, remove_lock, remove_orphans
from triplicate.runtime import require_sound_sqlite

Result = TypeVar("Result")

FORMAT_VERSION = 1
"""`PRAGMA user_version`. Files of this format must stay readable; a new format needs a migration."""

APPLICATION_ID = 0x54726970
"""`PRAGMA application_id`: the letters ``Trip``."""

BUSY_LIMIT_S = 5.0
"""Maximum wait for another process that is writing."""

BUSY_PAUSE_S = 0.001
"""Time between two attempts to lock a file that another process is writing. SQLite's own busy timeout lengthens its pauses to 0.1 s, so
that who has waited longest tries least often, and beside writers without pause never meets the file unlocked."""

LOOK_INTERVAL_MAX_S = 3.0
"""A session whose last search for dead sessions is older than this was asleep itself, and does not judge heartbeats yet."""

SCHEMA = """
CREATE TABLE nodes (
    path TEXT PRIMARY KEY NOT NULL,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    cversion INTEGER NOT NULL,
    created_children INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    mtime_ms INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    birth INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX nodes_by_parent ON nodes (parent, path);
CREATE INDEX nodes_by_owner ON nodes (owner) WHERE owner <> 0;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lock TEXT NOT NULL UNIQUE,
    process INTEGER NOT NULL,
    opened_ms INTEGER NOT NULL
);
CREATE TABLE births (number INTEGER NOT NULL);
INSERT INTO births VALUES (0);
INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0, 0, 0, 0, 0);
"""
"""`birth` numbers the creations of nodes, so that a node deleted and made again is not taken for the old one. The root's parent is
empty text, which is no path."""

Touched = dict[str, None]
Fingerprint = tuple[int, int, int] | None


class _NotEphemeral(Exception):
    """The node is not ephemeral any more: it was deleted and created again."""


def _raise_not_ephemeral() -> NoReturn:
    raise _NotEphemeral


class SqliteStore:
    """One connection, used by one thread. Methods with the names of `Tree`'s methods follow their contracts."""

    def __init__(self, path: str, wall_us: Callable[[], int], *, create: bool = True) -> None:
        self._path = path
        self._wall_us = wall_us
        self._create = create
        self.lock_directory = f"{path}-sessions"
        self._session_id = 0
        self._touched: Touched = {}
        self._fingerprints: dict[str, Fingerprint] = {}
        self._seen_version = -1
        self._looked_at = boot_seconds()
        self._waiting_since = 0.0
        self._database = self._connect()

    # Opening and closing.

    def open_session(self, lock_name: str) -> int:
        """Store a session whose lock is already held; returns its id. Ids are never used again."""

        def insert() -> int:
            self._execute(
                "INSERT INTO sessions (lock, process, opened_ms) VALUES (?, ?, ?)", lock_name, os.getpid(), self._wall_us() // 1000
            )
            return self._database.last_insert_rowid()

        self._session_id = self._transaction("BEGIN IMMEDIATE", insert)
        remove_orphans(self.lock_directory, self._transaction("BEGIN", self._lock_names))
        return self._session_id

    def open_poll(self) -> SqlitePoll:
        """A further connection, which only notices writes. Raises ConnectionLost."""
        return self._guarded(lambda: SqlitePoll(self._path))

    def close_session(self) -> Touched:
        """Remove the session and its ephemeral nodes."""
        self._touched = {}
        self._transaction("BEGIN IMMEDIATE", lambda: self._remove_session(self._session_id))
        return self._touched

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    # Operations: each returns its result and the paths whose watches must wake.

    def read(self, function: Callable[[SqliteStore], Result]) -> tuple[Result, Touched]:
        """Run a reading function on one snapshot.

        Raises:
            SessionExpired: another session declared this one dead. ConnectionLost: the file cannot be read now.
        """

        def checked() -> Result:
            self._require_session()
            return function(self)

        return self._transaction("BEGIN", checked), {}

    def write(self, function: Callable[[SqliteStore], Result], data_of: str = "") -> tuple[Result, Touched]:
        """Run a function that changes nodes, as one transaction. Raises as `read`.

        Args:
            data_of: the path whose data is the only change, or empty. If that node is ephemeral, the change is not synced: the node does
                not survive a power failure, and a sync keeps the file locked for milliseconds.
        """
        if data_of and self._is_ephemeral(data_of):
            self._guarded(lambda: self._execute("PRAGMA synchronous = NORMAL"))
            try:
                return self._write(lambda store: function(store) if store._is_ephemeral(data_of) else _raise_not_ephemeral())
            except _NotEphemeral:
                pass  # Nothing was changed yet; the change below is synced.
            finally:
                self._guarded(lambda: self._execute("PRAGMA synchronous = FULL"))
        return self._write(function)

    def _is_ephemeral(self, path: str) -> bool:
        stat = self._guarded(lambda: self.exists(path))
        return stat is not None and stat.ephemeral_owner != 0

    def _write(self, function: Callable[[SqliteStore], Result]) -> tuple[Result, Touched]:
        self._touched = {}

        def checked() -> tuple[Result, dict[str, Fingerprint]]:
            self._require_session()
            result = function(self)
            return result, {path: self._fingerprint(path) for path in self._touched if path in self._fingerprints}

        # The caller wakes this session's watches on these paths. A failed commit leaves the poll's fingerprints as they were.
        result, fingerprints = self._transaction("BEGIN IMMEDIATE", checked)
        self._fingerprints.update(fingerprints)
        return result, self._touched

    def get(self, path: str) -> tuple[bytes, Stat]:
        row = self._row("SELECT data, version, cversion, ctime_ms, mtime_ms, owner FROM nodes WHERE path = ?", path)
        if row is None:
            self._raise_no_node(path)
        return row[0], Stat(*row[1:])

    def exists(self, path: str) -> Stat | None:
        row = self._row("SELECT version, cversion, ctime_ms, mtime_ms, owner FROM nodes WHERE path = ?", path)
        return None if row is None else Stat(*row)

    def children(self, path: str) -> tuple[list[str], Stat]:
        stat = self.exists(path)
        if stat is None:
            self._raise_no_node(path)
        rows = self._execute("SELECT path FROM nodes WHERE parent = ? ORDER BY path", path)
        return [name_of(child) for (child,) in rows], stat

    def create(self, path: str, data: bytes, *, ephemeral: bool, sequential: bool, parents: bool) -> str:
        if parents:
            for ancestor in ancestors_of(path):
                if self.exists(ancestor) is None:
                    self._insert(ancestor, b"", ephemeral=False)
        if sequential:
            parent = parent_of(path)
            row = self._row("SELECT created_children FROM nodes WHERE path = ?", parent)
            if row is None:
                self._raise_no_node(parent)
            path += sequence_suffix(row[0])
        self._insert(path, data, ephemeral=ephemeral)
        return path

    def set(self, path: str, data: bytes, version: int) -> Stat:
        self.check(path, version)
        self._execute("UPDATE nodes SET data = ?, version = version + 1, mtime_ms = ? WHERE path = ?", data, self._now_ms(), path)
        self._touched[path] = None
        stat = self.exists(path)
        assert stat is not None
        return stat

    def delete(self, path: str, version: int) -> None:
        if path == "/":
            raise ArgumentError("/: the root cannot be deleted")
        self.check(path, version)
        (count,) = self._row("SELECT count(*) FROM nodes WHERE parent = ?", path)
        if count:
            raise NotEmpty(f"{path}: has {count} children")
        self._remove(path)

    def check(self, path: str, version: int) -> None:
        stat = self.exists(path)
        if stat is None:
            self._raise_no_node(path)
        if version not in (ANY_VERSION, stat.version):
            raise BadVersion(f"{path}: version {stat.version}, expected {version}")

    def multi(self, operations: Sequence[TreeOperation]) -> None:
        for operation in operations:
            match operation:
                case CreateNode():
                    self.create(operation.path, operation.data, ephemeral=operation.ephemeral, sequential=False, parents=False)
                case SetData():
                    self.set(operation.path, operation.data, operation.version)
                case DeleteNode():
                    self.delete(operation.path, operation.version)
                case CheckVersion():
                    self.check(operation.path, operation.version)

    # Watches and dead sessions.

    def arm(self, path: str) -> None:
        """Record the present state of a path for `changed_paths`."""
        if path not in self._fingerprints:
            self._fingerprints[path] = self._transaction("BEGIN", lambda: self._fingerprint(path))

    def changed_paths(self, watched: Sequence[str]) -> list[str]:
        """The watched paths that another connection has changed since the last call or since they were armed.

        If nothing was written since, this costs one read of shared memory.

        Raises:
            SessionExpired: another session declared this one dead.
        """
        (version,) = self._guarded(lambda: self._row("PRAGMA data_version"))
        if version == self._seen_version:
            return []

        def compare() -> dict[str, Fingerprint]:
            self._require_session()
            return {path: self._fingerprint(path) for path in watched}

        now = self._transaction("BEGIN", compare)
        before, self._fingerprints = self._fingerprints, now
        self._seen_version = version
        return [path for path in watched if path not in before or before[path] != now[path]]

    def remove_dead(self) -> Touched:
        """Remove dead sessions with their ephemeral nodes; returns the touched paths.

        Raises:
            SessionExpired: another session declared this one dead.
        """
        now = boot_seconds()
        judge_heartbeat = now - self._looked_at < LOOK_INTERVAL_MAX_S
        self._looked_at = now
        rows = self.read(lambda _: self._execute("SELECT id, lock FROM sessions ORDER BY id"))[0]
        touched: Touched = {}
        for session_id, lock_name in rows:
            if session_id != self._session_id and is_dead(self.lock_directory, lock_name, judge_heartbeat=judge_heartbeat):
                _, removed = self.write(lambda store, dead=session_id: store._remove_session(dead))  # type: ignore[misc]
                remove_lock(self.lock_directory, lock_name)
                touched.update(removed)
        return touched

    # Inside a transaction.

    def _insert(self, path: str, data: bytes, *, ephemeral: bool) -> None:
        if self.exists(path) is not None:
            raise NodeExists(f"{path}: exists already")
        parent = parent_of(path)
        parent_stat = self.exists(parent)
        if parent_stat is None:
            self._raise_no_node(parent)
        if parent_stat.ephemeral_owner:
            raise MetadataError(f"{path}: {parent} is ephemeral and can have no children")
        self._execute("UPDATE births SET number = number + 1")
        now_ms = self._now_ms()
        owner = self._session_id if ephemeral else 0
        self._execute("INSERT INTO nodes SELECT ?, ?, ?, 0, 0, 0, ?, ?, ?, number FROM births", path, parent, data, now_ms, now_ms, owner)
        self._execute("UPDATE nodes SET cversion = cversion + 1, created_children = created_children + 1 WHERE path = ?", parent)
        self._touched[path] = None
        self._touched[parent] = None

    def _remove(self, path: str) -> None:
        parent = parent_of(path)
        self._execute("DELETE FROM nodes WHERE path = ?", path)
        self._execute("UPDATE nodes SET cversion = cversion + 1 WHERE path = ?", parent)
        self._touched[path] = None
        self._touched[parent] = None

    def _remove_session(self, session_id: int) -> None:
        for (path,) in self._execute("SELECT path FROM nodes WHERE owner = ? ORDER BY path", session_id):
            self._remove(path)
        self._execute("DELETE FROM sessions WHERE id = ?", session_id)

    def _require_session(self) -> None:
        if self._row("SELECT 1 FROM sessions WHERE id = ?", self._session_id) is None:
            raise SessionExpired(f"session {self._session_id} is over: another process found this one dead and ended it in {self._path}")

    def _lock_names(self) -> list[str]:
        return [name for (name,) in self._execute("SELECT lock FROM sessions")]

    def _fingerprint(self, path: str) -> Fingerprint:
        row: Fingerprint = self._row("SELECT birth, version, cversion FROM nodes WHERE path = ?", path)
        return row

    def _raise_no_node(self, path: str) -> NoReturn:
        raise NoNode(f"{path}: no such node")

    def _now_ms(self) -> int:
        return self._wall_us() // 1000

    # SQLite.

    def _connect(self) -> apsw.Connection:
        require_sound_sqlite()
        if not os.path.isdir(os.path.dirname(self._path)):
            raise ConfigError(f"metadata file {self._path}: its directory does not exist; create it, or correct the address")
        if self._create:
            self._create_private()
        elif not os.path.exists(self._path):
            raise ConfigError(f"metadata file {self._path} does not exist: correct the address, or start a cluster with `triplicate up`")
        try:
            database = apsw.Connection(self._path)
        except apsw.Error as error:
            raise ConfigError(f"metadata file {self._path} cannot be opened: {error}; check that it is writable") from error
        database.set_busy_handler(self._await_turn)
        self._database = database
        try:
            self._guarded(self._initialise)
        except BaseException:
            database.close()
            raise
        return database

    def _create_private(self) -> None:
        """Create the file with mode 0600. SQLite gives its log and its shared memory the mode of the file each time it creates them.

        A file that exists is not opened here: closing it would release the locks of this process's other connections.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return
        except OSError as error:
            raise ConfigError(
                f"metadata file {self._path} cannot be made: {error.strerror}; check that its directory is writable"
            ) from None
        os.close(descriptor)

    def _initialise(self) -> None:
        (application,) = self._row("PRAGMA application_id")
        (tables,) = self._row("SELECT count(*) FROM sqlite_master")
        if application != APPLICATION_ID and tables:
            raise ConfigError(f"{self._path} is a database of another program; choose another metadata file")
        if not self._create and not tables:
            raise ConfigError(f"metadata file {self._path} is empty: restore it, or correct the address")
        self._execute("PRAGMA synchronous = FULL")
        self._switch_to_wal()
        self._transaction("BEGIN IMMEDIATE", self._create_schema)

    def _switch_to_wal(self) -> None:
        deadline = boot_seconds() + BUSY_LIMIT_S
        while True:
            try:
                (mode,) = self._row("PRAGMA journal_mode = WAL")
            except (apsw.BusyError, apsw.LockedError):
                # SQLite does not call the busy handler here while another process makes the same switch.
                if boot_seconds() > deadline:
                    raise
                pause(0.01)
                continue
            if mode != "wal":
                raise ConfigError(f"metadata file {self._path}: its file system cannot hold a database shared by processes (no WAL)")
            return

    def _create_schema(self) -> None:
        (version,) = self._row("PRAGMA user_version")
        if version == 0:
            for statement in SCHEMA.split(";"):
                if statement.strip():
                    self._execute(statement)
            self._execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        elif version != FORMAT_VERSION:
            raise FormatError(f"metadata file {self._path} has format {version}; this release knows format {FORMAT_VERSION}: upgrade it")

    def _await_turn(self, attempts: int) -> bool:
        """SQLite's busy handler: whether to try again after `attempts` attempts to lock the file."""
        now = boot_seconds()
        if not attempts:
            self._waiting_since = now
        if now - self._waiting_since > BUSY_LIMIT_S:
            return False
        pause(BUSY_PAUSE_S)
        return True

    def _row(self, statement: str, *parameters: Any) -> Any:
        """The first row, or None."""
        rows = self._execute(statement, *parameters)
        return rows[0] if rows else None

    def _execute(self, statement: str, *parameters: Any) -> list[Any]:
        """Run one statement to its end; returns its rows."""
        return self._database.execute(statement, parameters).fetchall()

    def _transaction(self, begin: str, function: Callable[[], Result]) -> Result:
        def whole() -> Result:
            self._execute(begin)
            try:
                result = function()
                self._execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._execute("ROLLBACK")
                raise
            return result

        return self._guarded(whole)

    def _guarded(self, function: Callable[[], Result]) -> Result:
        """Translate SQLite's errors."""
        try:
            return function()
        except (apsw.BusyError, apsw.LockedError) as error:
            raise ConnectionLost(f"metadata file {self._path} stayed locked by another process for {BUSY_LIMIT_S:g} s") from error
        except (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError) as error:
            raise CorruptionError(f"metadata file {self._path}: {error}") from error
        except apsw.Error as error:
            raise ConnectionLost(f"metadata file {self._path}: {error}") from error
