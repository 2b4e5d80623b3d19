"""A session that waits for another writer tries less and less often, as with the busy timeout of SQLite."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import sqlite_store
from triplicate.metadata.drivers.sqlite_store import SqliteStore

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_store.py::test_a_session_that_waits_for_a_writer_tries_as_often_at_the_end_as_at_the_start",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = SqliteStore._await_turn

    def longer(store: SqliteStore, attempts: int) -> bool:
        vars(sqlite_store)["pause"](min(0.1, 0.001 * 2**attempts))
        return real(store, attempts)

    patch(SqliteStore, "_await_turn", longer)
