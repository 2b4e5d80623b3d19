"""Chains of AND, OR and || reach SQLite as they are, as trees with a level for each term."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.syntax import expression_parser

TESTS = ["tests/unit/sql/pg/translate/test_translation.py::test_a_long_chain_means_the_same"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(expression_parser, "_GROUP", 10**9)
