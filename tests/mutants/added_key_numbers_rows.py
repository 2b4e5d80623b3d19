"""ADD PRIMARY KEY makes an integer column the rowid, so that a row without a key gets a number."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import table_keys

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_an_added_key_of_one_integer_column_does_not_number_rows"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(table_keys, "_would_number_rows", lambda _: False)
