"""A CHECK of the table that names one column only has a name without it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import constraint_names

TESTS = ["tests/unit/sql/executor/test_violations.py::test_the_constraint_is_named"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(constraint_names, "_columns_in", lambda relation, expression: [])
