"""REFERENCES without columns is stored as it is written where the key is an index, which SQLite does not find."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import definitions

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_a_reference_without_columns_is_to_the_added_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(definitions, "with_key_columns", lambda _, sql: sql)
