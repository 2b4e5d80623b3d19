"""The size of a statement leaves out that SQLite repeats the expression of a computed column."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.expansion import _Scope

TESTS = ["tests/unit/sql/core/test_expansion.py::test_subqueries_that_grow_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_Scope, "weight", lambda self, column: 1)
