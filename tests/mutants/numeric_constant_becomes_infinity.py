"""A numeric constant beyond a float's range is stored in a column of floats as infinity, or as 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.pg.analysis.type_resolution import TypeResolver
from triplicate.sql.pg.values import types

TESTS = ["tests/unit/sql/pg/translate/test_translation.py::test_what_cannot_mean_the_same_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    assign = TypeResolver.assign

    def as_it_is(self: TypeResolver, expression: Any, target: int | None, column: str, modifiers: tuple[int, ...] = ()) -> None:
        if (expression.oid, target) != (types.NUMERIC, types.FLOAT8):
            assign(self, expression, target, column, modifiers)

    patch(TypeResolver, "assign", as_it_is)
