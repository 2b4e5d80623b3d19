"""ROLLUP is called as a function, and the operator ``?`` of jsonb is a parameter."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import catalogue_queries
from triplicate.sql.pg.translate import translation

TESTS = ["tests/unit/sql/pg/syntax/test_missing_constructs.py::test_they_are_refused_by_their_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for module in (translation, catalogue_queries):
        patch(module, "refuse_missing", lambda _tokens: None)
