"""A numeric of many digits is compared as the text it is stored as, which SQLite sorts behind every number."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate import render_numbers

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_an_expression_has_postgresql_s_value[a / 3.0 > 7-0]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(render_numbers, "may_be_long", lambda node: False)
