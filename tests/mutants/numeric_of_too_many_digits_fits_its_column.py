"""A number counts as fitting its column's precision if it is below the bound: its scale, and a whole float, are overlooked."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import conversions

TESTS = ["tests/unit/sql/pg/values/test_conversions.py::test_a_number_that_fits_its_column_is_what_the_decimal_would_be"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def fits(value: Value, precision: int, scale: int = 0) -> bool:
        return isinstance(value, (int, float)) and 0 <= scale <= precision and abs(value) < 10 ** (precision - scale)

    patch(conversions, "_fits", fits)
