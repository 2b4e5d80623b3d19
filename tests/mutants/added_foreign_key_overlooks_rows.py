"""ADD FOREIGN KEY does not check the rows that are there."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import schema_statements

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_an_added_foreign_key_goes_with_its_savepoint_and_its_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_statements, "refuse_unmatched_rows", lambda *_: None)
