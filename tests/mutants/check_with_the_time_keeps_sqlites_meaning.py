"""A CHECK that asks for the time is left in SQLite's meaning as a whole."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate import render

TESTS = ["tests/unit/sql/pg/ddl/test_definition_rewriter.py::test_an_expression_has_postgresqls_meaning_in_sqlites_words"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(render, "NOW_IN_CHECK", {})
