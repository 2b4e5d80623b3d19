"""Transactions of one row that a follower decodes together lose the row of the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.core import records

TESTS = [
    "tests/property/test_records_codec.py::test_alike_transactions_are_decoded_in_one_stretch",
    "tests/property/test_records_codec.py::test_rows_decoded_together_are_those_decoded_one_by_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = records._run_of

    def shortened(shape: Any, kind: Any, flags: int, count: int, columns: Any) -> Any:
        short = count - 1 or 1
        return real(shape, kind, flags, short, [column[:short] for column in columns])

    patch(records, "_run_of", shortened)
