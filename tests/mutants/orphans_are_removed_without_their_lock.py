"""A lock file without a session is removed after its lock was released, when a new session may hold it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import sqlite_sessions

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_store.py::test_a_lock_taken_while_orphans_are_removed_is_kept_or_taken_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def afterwards(directory: str, name: str) -> None:
        if sqlite_sessions.is_dead(directory, name, judge_heartbeat=False):
            sqlite_sessions.remove_lock(directory, name)

    patch(sqlite_sessions, "_remove_if_free", afterwards)
