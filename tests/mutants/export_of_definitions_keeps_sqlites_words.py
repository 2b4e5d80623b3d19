"""An export has the expressions of tables as SQLite reads them, which PostgreSQL's rules refuse or read otherwise."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import sql_dump

TESTS = ["tests/unit/sql/backup/test_sql_dump.py::test_a_dump_keeps_the_meaning_of_definitions"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sql_dump, "in_postgresql_words", str)
