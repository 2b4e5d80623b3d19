"""Sums and products of numerics keep 1,000 digits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from functools import partial

from triplicate.sql.executor import number_scalars, scalars
from triplicate.sql.executor.scalar_function import Scalar

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_a_number_is_never_written_out_beyond_the_limits"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    short = Context(prec=1000, Emax=200_000, Emin=-200_000)
    add = Scalar(partial(number_scalars._numeric, short.add), (2,))
    patch(scalars, "NUMBER_SCALARS", number_scalars.NUMBER_SCALARS | {"numeric_add": add})
