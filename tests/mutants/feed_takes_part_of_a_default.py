"""The default of an added column is its first token: 1e-3 becomes no number, and .5 a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core import schema_changes
from triplicate.sql.core.lexer import Token

TESTS = [
    "tests/unit/sql/core/test_schema_changes.py::test_columns_and_values_are_those_that_sqlite_has_then",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first(sql: str, rest: Sequence[Token]) -> str:
        end = next((place for place, token in enumerate(rest) if token.text not in ("+", "-")), 0)
        return sql[rest[0].start : rest[end].end]

    patch(schema_changes, "_expression", first)
