"""A table to which foreign keys refer has no triggers in the catalogue, so that psql does not ask for those that refer to it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import relations, system_tables
from triplicate.sql.core.interface import Row, Value

TESTS = ["tests/unit/sql/test_catalogue.py::test_a_referenced_table_has_triggers_as_in_postgresql"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def system_row(table: str, **values: Value) -> Row:
        if table == "pg_class":
            values["relhastriggers"] = False
        return original(table, **values)

    original = system_tables.system_row
    patch(relations, "system_row", system_row)
