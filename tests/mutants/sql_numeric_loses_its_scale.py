"""A numeric is shown without the trailing zeros of its column's scale."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import types

TESTS = ["tests/unit/sql/pg/values/test_types.py::test_a_numeric_is_shown_with_the_scale_of_its_column"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def none(typmod: int) -> None:
        return None

    patch(types, "scale_of_typmod", none)
