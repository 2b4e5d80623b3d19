"""A SERIAL column gives the number of a deleted row again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import create_table
from triplicate.sql.pg.ddl.column_parser import ColumnParts, numbered_text
from triplicate.sql.pg.ddl.parts import TextEdits
from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_column_that_numbers_itself_does_so_and_never_gives_a_number_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def plain(column: ColumnParts, key_name: str | None, edits: TextEdits, expressions: StoredExpressions) -> str:
        return numbered_text(column, key_name, edits, expressions).replace(" AUTOINCREMENT", "")

    patch(create_table, "numbered_text", plain)
