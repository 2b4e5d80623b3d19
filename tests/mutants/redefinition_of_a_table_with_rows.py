"""ALTER TABLE … ALTER COLUMN … TYPE recreates a table without checking that it is empty."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import redefinitions

TESTS = ["tests/unit/sql/executor/test_redefinitions.py::test_an_empty_table_is_made_again_with_its_indexes_triggers_and_children"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(redefinitions, "_require_empty", lambda *_: None)
