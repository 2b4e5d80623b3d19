"""Sums beyond 64 bits leave a view as floats."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis.overflow import mark_arithmetic
from triplicate.sql.pg.translate import translation

TESTS = ["tests/unit/sql/pg/rewrite/test_create_view.py::test_arithmetic_of_a_view_fails_beyond_its_type"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(translation, "mark_arithmetic", lambda statement, *, leaves: mark_arithmetic(statement))
