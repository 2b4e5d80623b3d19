"""A table constraint stays before the columns, where SQLite does not read it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import reserved_words

TESTS = ["tests/unit/sql/pg/rewrite/test_reserved_words.py::test_table_constraints_come_behind_the_columns"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(reserved_words, "_is_constraint", lambda item: False)
