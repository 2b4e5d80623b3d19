"""The catalogue reads the columns of all views at once, so that one view that cannot be computed fails everything."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import schema_facts

TESTS = ["tests/unit/sql/test_catalogue.py::test_a_view_that_cannot_be_computed_hides_nothing_else"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_facts, "_COLUMNS", schema_facts._COLUMNS.replace("l.type = 'table'", "l.type in ('table', 'view', 'virtual')"))
    patch(schema_facts, "_UNSURE", "select 1 where false")
