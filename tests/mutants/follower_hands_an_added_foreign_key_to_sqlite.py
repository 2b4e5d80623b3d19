"""A follower runs ADD FOREIGN KEY as a statement of SQLite, which has none."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage import applier

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_a_table_with_rows_gets_a_foreign_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(applier, "added_reference", lambda _: None)
