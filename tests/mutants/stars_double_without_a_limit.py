"""A select list may have any number of columns, which stars within each other double."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis import analyzer

TESTS = ["tests/unit/sql/pg/analysis/test_from_clause.py::test_stars_within_each_other_are_limited_where_they_double"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(analyzer, "_COLUMNS_MAX", 100_000)
