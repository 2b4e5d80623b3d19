"""The SQLite driver's set and delete ignore the version they expect."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core.tree import ANY_VERSION
from triplicate.metadata.drivers import sqlite_store

TESTS = ["tests/unit/metadata/core/test_tree_contract.py::test_a_version_that_does_not_match_changes_nothing[sqlite]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    check = sqlite_store.SqliteStore.check
    patch(sqlite_store.SqliteStore, "check", lambda store, path, version: check(store, path, ANY_VERSION))
