"""The primary key of a SERIAL column is found only beside the column, not among the table's constraints."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import create_table

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_serial_or_identity_column_never_reuses_a_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def none(self: object) -> None:
        return None

    patch(create_table._Body, "_table_key", none)
