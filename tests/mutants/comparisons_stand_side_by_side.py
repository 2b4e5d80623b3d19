"""Operators of comparison that PostgreSQL does not group stand side by side."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/syntax/test_statement_parser.py::test_what_is_a_mistake_in_postgresql_is_one_here"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.syntax.expression_parser import ExpressionParser

    patch(ExpressionParser, "_refuse_chain", lambda self, left: None)
