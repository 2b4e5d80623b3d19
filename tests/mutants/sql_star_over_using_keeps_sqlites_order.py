"""``*`` over USING and NATURAL gives the columns in SQLite's order."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis import from_clause

TESTS = ["tests/unit/sql/pg/translate/test_translation.py::test_a_star_over_using_names_its_columns"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(from_clause, "has_merged", lambda _source: False)
