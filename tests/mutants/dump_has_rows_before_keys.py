"""SQL text has the rows before the unique indexes to which their foreign keys refer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import sql_dump

TESTS = ["tests/unit/sql/backup/test_sql_dump.py::test_a_dump_that_is_loaded_makes_the_same_database"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sql_dump, "_KEYS", "select sql from main.sqlite_schema where false")
