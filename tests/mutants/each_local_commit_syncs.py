"""Every commit of a copy syncs its write-ahead log, although the log of the database is durable already."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage import sqlite_file

TESTS = ["tests/unit/sql/storage/test_sqlite_file.py::test_a_commit_writes_the_write_ahead_log_and_does_not_sync_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    open_connection = sqlite_file._open

    def with_syncs(path: str, setup: sqlite_file.ConnectionSetup | None) -> apsw.Connection:
        connection = open_connection(path, setup)
        connection.pragma("synchronous", "full")
        return connection

    patch(sqlite_file, "_open", with_syncs)
