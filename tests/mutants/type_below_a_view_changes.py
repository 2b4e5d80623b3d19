"""A column's type changes although a view keeps the type of an expression of it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import redefinitions

TESTS = ["tests/unit/sql/executor/test_redefinitions.py::test_a_type_that_a_view_keeps_stays"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(redefinitions, "_refuse_types_of_views", lambda *_: None)
