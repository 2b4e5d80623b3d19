"""ALTER TABLE gives a table a reserved name, and hides the catalogue's table from all."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import schema_statements

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_no_table_gets_a_reserved_name"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_statements, "is_reserved", lambda _: False)
