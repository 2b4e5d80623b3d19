"""An empty item between the brackets of CREATE TABLE ends in XX000, and not in a syntax error."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.rewrite import reserved_words

TESTS = ["tests/unit/sql/pg/rewrite/test_reserved_words.py::test_table_constraints_come_behind_the_columns"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.ddl.parts import split

    def unsplit(tokens: list[Token]) -> list[list[Token]]:
        found = split(tokens)
        if not all(found):
            raise IndexError("list index out of range")
        return found

    patch(reserved_words, "split", unsplit)
