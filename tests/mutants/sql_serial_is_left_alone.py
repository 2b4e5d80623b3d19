"""A SERIAL column goes to SQLite untranslated, and stays NULL."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl.column_parser import ColumnParts

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_serial_or_identity_column_never_reuses_a_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def never(self: ColumnParts) -> bool:
        return False

    patch(ColumnParts, "is_identity", property(never))
