"""The tree of a statement that its rewriting made long is remembered, although its translation changes it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_no_tree_is_remembered_of_a_statement_that_its_rewriting_makes_long"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "_remembered", plans._parsed)
