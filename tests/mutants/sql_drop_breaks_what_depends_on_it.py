"""A table is dropped although a view reads it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import definitions

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_what_depends_on_a_table_keeps_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(*arguments: object) -> None:
        return

    patch(definitions, "_refuse_broken_views", nothing)
