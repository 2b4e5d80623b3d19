"""A SERIAL column gives the number of a deleted row again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import create_table
from triplicate.sql.pg.ddl.column_parser import ColumnParts, identity_text
from triplicate.sql.pg.ddl.parts import TextEdits
from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_serial_or_identity_column_never_reuses_a_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def plain(column: ColumnParts, key_name: str | None, edits: TextEdits, expressions: StoredExpressions) -> str:
        return identity_text(column, key_name, edits, expressions).replace(" AUTOINCREMENT", "")

    patch(create_table, "identity_text", plain)
