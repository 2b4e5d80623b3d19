"""The tree of a statement whose parsed form is remembered is handed to its translation, which changes it for the next one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate.translation import _ParsedTrees

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_no_tree_of_a_statement_that_is_remembered_is_handed_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_ParsedTrees, "keep", lambda self, statement, tree: False)
