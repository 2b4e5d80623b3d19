"""A unit of time has only the name under which it is defined."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_an_expression_has_postgresql_s_value"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.values import date_functions

    patch(date_functions, "_unit", lambda field: str(field).lower())
