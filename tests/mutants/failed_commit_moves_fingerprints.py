"""The poll takes a change for known whose commit failed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_store import SqliteStore

TESTS = [
    "tests/unit/metadata/drivers/test_sqlite_store.py::test_a_commit_that_fails_leaves_the_poll_able_to_see_the_next_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = SqliteStore.set

    def early(store: SqliteStore, path: str, data: bytes, version: int) -> object:
        stat = real(store, path, data, version)
        store._fingerprints[path] = store._fingerprint(path)
        return stat

    patch(SqliteStore, "set", early)
