"""A float of 32 bits has the 64 bits that it was converted to, which equal no column's value."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import types

TESTS = [
    "tests/unit/sql/pg/values/test_types.py::test_a_float_of_32_bits_is_its_shortest_decimal[0.3-0.3]",
    "tests/unit/sql/pg/values/test_conversions.py::test_a_cast_gives_what_postgresql_gives",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    layout = types._FLOAT4
    patch(types, "float_of_32_bits", lambda number: float(layout.unpack(layout.pack(number))[0]))
