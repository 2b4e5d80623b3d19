"""The SQLite driver compares the watched paths at every poll: an idle process wakes a second thread 50 times a second."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_tree import SqliteTree

TESTS = ["tests/unit/metadata/drivers/test_sqlite_poll.py::test_watches_of_a_quiet_file_wake_no_worker"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SqliteTree, "_is_poll_due", lambda self: True)
