"""SQLite creates the metadata file with the mode that the umask leaves."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_store import SqliteStore

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_store.py::test_every_file_of_the_store_is_private_whatever_the_umask",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SqliteStore, "_create_private", lambda store: None)
