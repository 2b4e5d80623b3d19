"""The tables and queries of a statement may have any number of columns together."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis import from_clause

TESTS = ["tests/unit/sql/pg/analysis/test_from_clause.py::test_the_columns_of_all_relations_are_limited"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(from_clause, "_COLUMNS_SEEN_MAX", 10**9)
