"""A SQLite library that can lose commits is accepted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import sqlite_store
from triplicate.sql.storage import sqlite_file

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_store.py::test_a_library_that_can_lose_a_commit_is_refused",
    "tests/unit/sql/storage/test_sqlite_file.py::test_a_library_that_can_lose_a_commit_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_store, "require_sound_sqlite", lambda: None)
    patch(sqlite_file, "require_sound_sqlite", lambda: None)
