"""Checkpoints of one local copy: its write-ahead log is copied into the database's file, and kept within a limit.

A checkpoint copies the pages that no reader's snapshot needs. SQLite reuses the log's file from its beginning only when no reader uses it,
which never happens with overlapping readers. Beyond the limit, a commit therefore waits for the readers for a bounded time, and readers'
snapshots that last longer are ended. No commit waits while the copy for a snapshot of the database is made: that copy cannot be ended,
and has its own limit.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage.sqlite_file import ConnectionSetup

_FRAME_HEADER_BYTES = 24
_CHECKPOINT_PAGES = 1000
"""From this number of pages on, each commit runs a passive checkpoint, as SQLite does by default."""
_WAIT_MS = 100
_LONG_WAIT_MS = 2000
"""How long a commit waits for readers beyond the limit, and beyond twice the limit, ms."""
_BUSY_TIMEOUT_MS = 5000
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

    def setup(self, following: ConnectionSetup | None) -> ConnectionSetup:
        """A setup for the connection that changes the copy. It installs the hook, and then calls the following setup."""

        def attach(connection: apsw.Connection) -> None:
            page_bytes = int(connection.pragma("page_size"))
            connection.set_wal_hook(lambda changed, _name, pages: self._committed(changed, pages, page_bytes))
            if following is not None:
                following(connection)

        return attach

    def _committed(self, connection: apsw.Connection, pages: int, page_bytes: int) -> int:
        self.size_bytes = pages * (page_bytes + _FRAME_HEADER_BYTES)
        self.held_back = False
        if self.size_bytes > self._limit_bytes and not self._is_copied():
            self._empty(connection)
        elif pages >= _CHECKPOINT_PAGES:
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error:
                return apsw.SQLITE_OK  # The commit has succeeded, and the next one tries again; SQLite's own hook does the same.
        return apsw.SQLITE_OK

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
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
