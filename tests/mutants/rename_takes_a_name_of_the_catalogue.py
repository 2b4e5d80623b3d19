"""ALTER TABLE gives a table the name of one of the catalogue, and hides it from all."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import schema_statements

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_no_table_gets_a_name_of_the_catalogue"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_statements, "CATALOGUE_TABLES", ())
