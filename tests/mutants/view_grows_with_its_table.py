"""A star in a view stays a star, so that the view fails when its table gets a column."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis.analyzer import Analyzer
from triplicate.sql.pg.translate import translation

TESTS = ["tests/unit/sql/pg/rewrite/test_create_view.py::test_a_view_keeps_its_columns_and_their_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(translation, "Analyzer", lambda *arguments, fixes_stars: Analyzer(*arguments))
