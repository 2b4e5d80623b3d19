"""A session that was declared expired continues to change metadata."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import sqlite_store

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_tree.py::test_a_session_whose_process_is_stopped_is_over_after_the_limit_and_learns_of_it"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_store.SqliteStore, "_require_session", lambda store: None)
