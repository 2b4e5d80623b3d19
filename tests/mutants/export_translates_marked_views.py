"""An export translates views, too, which have the mark of a translation: no database can read them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import sql_dump
from triplicate.sql.backup.stored_words import in_postgresql_words

TESTS = ["tests/unit/sql/backup/test_sql_dump.py::test_a_dump_keeps_the_meaning_of_definitions"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def every(sql: str) -> str:
        is_view = sql.startswith("CREATE VIEW")
        return in_postgresql_words("CREATE TABLE " + sql).removeprefix("CREATE TABLE ") if is_view else in_postgresql_words(sql)

    patch(sql_dump, "in_postgresql_words", every)
