"""Of the columns that are set together from a query, the values are stored as they are."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis import analyzer

TESTS = ["tests/unit/sql/pg/analysis/test_type_resolution_parameters.py::test_columns_that_are_set_together_are_cast_each"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(analyzer, "expanded_row", lambda row: [])
