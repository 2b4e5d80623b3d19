"""A record with bytes behind its row is decoded with its neighbours, not refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.core import column_codec, records

TESTS = ["tests/property/test_records_codec.py::test_rows_decoded_together_end_before_a_longer_record"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = column_codec.decode_single_values

    def to_the_end(values: Any, data: bytes, position: int, width: int) -> int:
        real(values, data, position, width)
        return len(data)

    patch(records, "decode_single_values", to_the_end)
