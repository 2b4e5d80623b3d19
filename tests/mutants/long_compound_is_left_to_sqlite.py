"""A long UNION is run with SQLite's meaning."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.syntax.statement_parser import StatementParser

TESTS = ["tests/unit/sql/pg/analysis/test_from_clause.py::test_a_long_compound_is_refused_and_not_left_to_sqlite"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def check(self: StatementParser, parts: int) -> None:
        if parts > 100:
            raise self.not_understood()

    patch(StatementParser, "_check_parts", check)
