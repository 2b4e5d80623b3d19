"""Checkpoints of one local copy: its write-ahead log is moved into the database's file, and kept within a limit.

SQLite moves the pages that no snapshot needs. It reuses the log's file from the beginning only when no reader uses it; with overlapping
readers that never happens. So beyond the limit a commit waits for the readers, for a bounded time, and snapshots that last longer are
ended. No commit waits while the copy for a snapshot of the database is made: that copy cannot be ended, and has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage.sqlite_file import ConnectionSetup

_FRAME_HEADER_BYTES = 24
_CHECKPOINT_PAGES = 1000
"""From this many pages on, each commit moves the pages that it can without waiting, as SQLite does by default."""
_WAIT_MS = 100
_LONG_WAIT_MS = 2000
"""How long a commit waits for readers beyond the limit, and beyond twice the limit."""
_BUSY_TIMEOUT_MS = 5000
"""The busy timeout that `sqlite_file` sets."""
OLD_SNAPSHOT_S = 1.0
"""Snapshots older than this are ended when the write-ahead log is too large. Younger ones are likely to end within the longer wait."""


class WalCheckpointer:
    """Watches the one connection that changes the copy. Its hook runs on the worker of that connection.

    Args:
        is_copied: whether the copy for a snapshot is being made. Called on the worker.
    """

    def __init__(self, limit_bytes: int, is_copied: Callable[[], bool] = lambda: False) -> None:
        self._limit_bytes = limit_bytes
        self._is_copied = is_copied
        self.size_bytes = 0
        """Bytes in use after the last commit."""
        self.held_back = False
        """Whether a reader prevented the last attempt to empty the log."""

    def setup(self, then: ConnectionSetup | None) -> ConnectionSetup:
        """A setup for the connection that changes the copy: this watch, and then another setup."""

        def attach(connection: apsw.Connection) -> None:
            page_bytes = int(connection.pragma("page_size"))
            connection.set_wal_hook(lambda changed, _name, pages: self._committed(changed, pages, page_bytes))
            if then is not None:
                then(connection)

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
                return apsw.SQLITE_OK  # As SQLite's own hook: the commit has succeeded, and the next one tries again.
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
