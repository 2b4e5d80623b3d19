"""Every unique index is taken for a primary key that was added."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import table_definitions
from triplicate.sql.storage import sqlite_schema

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_a_users_unique_index_is_no_primary_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_schema, "is_key_index", lambda _: True)
    patch(sqlite_schema, "KEY_MARK", "")
    patch(table_definitions, "is_key_index", lambda _: True)
