"""A keyword behind AS, or one that may name a column, is read as the keyword."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import reserved_words

TESTS = ["tests/unit/sql/pg/rewrite/test_reserved_words.py::test_a_name_that_only_sqlite_reserves_is_quoted"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(reserved_words, "_is_name", lambda tokens, index, *, in_cast: False)
