"""DROP TRIGGER … ON a table drops the trigger of that name of any table."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import definitions

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_trigger_is_dropped_from_its_table_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(definitions, "_has_trigger", lambda *_: True)
