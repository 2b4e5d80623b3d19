"""`last_insert_rowid()` and its kin are SQLite's own, of the shared connection."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.session_counters import SessionCounters

TESTS = ["tests/unit/dbapi/test_cursor.py::test_the_last_rowid_and_the_changes_are_of_this_connection"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SessionCounters, "bound", lambda _, prepared: prepared)
