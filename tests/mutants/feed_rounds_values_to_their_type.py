"""The change feed cuts fractions of integers, and rounds numerics to the digits of their column, instead of naming such values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from triplicate.spark.cluster import column_values

TESTS = ["tests/unit/spark/cluster/test_column_values.py::test_a_value_that_does_not_fit_is_named"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    whole = column_values._whole

    def rounded(kind: pa.DataType, values: Any) -> pa.Array:
        if pa.types.is_decimal(kind):
            return pa.array(np.round(np.array(values, dtype=float), kind.scale), from_pandas=True).cast(kind)
        return pa.array(values, kind) if pa.types.is_integer(kind) else whole(kind, values)

    patch(column_values, "_whole", rounded)
