"""A SERIAL column goes to SQLite untranslated, and stays NULL."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl.column_parser import ColumnParts

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_column_that_numbers_itself_does_so_and_never_gives_a_number_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def never(self: ColumnParts) -> bool:
        return False

    patch(ColumnParts, "numbers_itself", property(never))
