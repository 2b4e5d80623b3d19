"""The primary key of a SERIAL column is found only beside the column, not among the table's constraints."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import create_table

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_column_that_numbers_itself_does_so_and_never_gives_a_number_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def none(self: object) -> None:
        return None

    patch(create_table._Body, "_table_key", none)
