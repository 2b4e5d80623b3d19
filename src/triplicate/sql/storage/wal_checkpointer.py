"""Checkpoints of one local copy: its write-ahead log is copied into the database's file, and kept within a limit.

A checkpoint copies the pages that no reader's snapshot needs. SQLite reuses the log's file from its beginning only when no reader uses it,
which never happens with overlapping readers. Beyond the limit, a commit, or the transaction after it, therefore waits for the readers for
a bounded time, and readers' snapshots that last longer are ended. No commit waits while the copy for a snapshot of the database is made:
that copy cannot be ended, and has its own limit.

A checkpoint syncs the database's file. A leader, which commits on the event loop, therefore defers checkpoints: its commits only record the
size of the log, and `run` is called on the worker afterwards, before further commits.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage.sqlite_file import ConnectionSetup

_FRAME_HEADER_BYTES = 24
_CHECKPOINT_PAGES = 4000
"""From this number of pages on, each commit runs a passive checkpoint. SQLite's default is 1000 pages.

A checkpoint copies each page once, however often the log has it, and syncs two files: four times the pages took 1.5 times the time, in a
load of short transactions. Readers find pages by one hash table up to 4062 pages, and by several beyond.
"""
_WAIT_MS = 100
_LONG_WAIT_MS = 2000
"""How long a commit waits for readers beyond the limit, and beyond twice the limit, ms."""
BUSY_TIMEOUT_MS = 5000
"""The busy timeout that `sqlite_file` sets, ms."""
OLD_SNAPSHOT_S = 1.0
"""Readers' snapshots older than this are ended when the write-ahead log is too large. Younger ones usually end within the longer wait."""


class WalCheckpointer:
    """Runs checkpoints after commits of the one connection that changes the copy, on the worker of that connection.

    Args:
        limit_bytes: of the write-ahead log.
        is_copied: whether the copy for a snapshot is being made. Called on the worker.
    """

    def __init__(self, limit_bytes: int, is_copied: Callable[[], bool] = lambda: False) -> None:
        self._limit_bytes = limit_bytes
        self._is_copied = is_copied
        self.size_bytes = 0
        """Size of the write-ahead log after the last commit."""
        self.held_back = False
        """Whether a reader prevented the last attempt to empty the log."""
        self._pages = 0
        """Pages in the write-ahead log after the last commit; 0 where its checkpoint was tried."""
        self.next_commit_syncs = True
        """Whether the next commit may write the log from its beginning, and sync its header. Only the first after a checkpoint does."""

    def setup(self, following: ConnectionSetup | None, *, defers: bool = False) -> ConnectionSetup:
        """A setup for the connection that changes the copy. It installs the hook, and then calls the following setup.

        Args:
            defers: no commit runs a checkpoint. The caller calls `run` when one is due.
        """

        def attach(connection: apsw.Connection) -> None:
            self.next_commit_syncs = True
            page_bytes = int(connection.pragma("page_size"))
            connection.set_wal_hook(lambda changed, _name, pages: self._committed(changed, pages, page_bytes, defers=defers))
            if following is not None:
                following(connection)

        return attach

    def _committed(self, connection: apsw.Connection, pages: int, page_bytes: int, *, defers: bool) -> int:
        self._pages = pages
        self.size_bytes = pages * (page_bytes + _FRAME_HEADER_BYTES)
        self.held_back = self.next_commit_syncs = False
        if not defers and self.is_due:
            self.run(connection)
        return apsw.SQLITE_OK

    @property
    def is_due(self) -> bool:
        """Whether the write-ahead log is large enough for a checkpoint, and none was tried since the last commit."""
        return self._pages >= _CHECKPOINT_PAGES or (self._pages > 0 and self.size_bytes > self._limit_bytes)

    def run(self, connection: apsw.Connection) -> None:
        """Run a checkpoint after a commit. Blocks, and syncs the database's file."""
        self.next_commit_syncs = True
        pages, self._pages = self._pages, 0
        if self.size_bytes > self._limit_bytes and not self._is_copied():
            self._empty(connection)
        elif pages >= _CHECKPOINT_PAGES:
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error:
                return  # The commit has succeeded, and the next one tries again; SQLite's own hook does the same.

    def _empty(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(_LONG_WAIT_MS if self.size_bytes > 2 * self._limit_bytes else _WAIT_MS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.LockedError):
            self.held_back = True
        except apsw.Error:
            return  # A full disk, for example: the commit has succeeded, and the next one tries again.
        else:
            self.size_bytes = 0
        finally:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
