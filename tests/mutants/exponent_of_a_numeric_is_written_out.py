"""A number is read without a look at its exponent, and 131,073 digits are written out."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import numeric_limits

# Only these: others would take the memory of the machine.
TESTS = [
    "tests/unit/sql/executor/test_scalars.py::test_a_number_is_never_written_out_beyond_the_limits[1e131072-22003]",
    "tests/unit/sql/executor/test_scalars.py::test_a_number_is_never_written_out_beyond_the_limits[1e-16384-22003]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(numeric_limits, "DIGITS_BEFORE", 10**6)
    patch(numeric_limits, "DIGITS_AFTER", 10**6)
