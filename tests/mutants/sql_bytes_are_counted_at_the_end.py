"""The size of a transaction is checked only after all its rows are captured."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.encoded_size import ByteCount

TESTS = [
    "tests/unit/sql/core/test_encoded_size.py::test_a_statement_that_changes_too_much_stops_long_before_its_end",
    "tests/unit/sql/core/test_encoded_size.py::test_many_small_rows_count_as_well",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def never(self: ByteCount, count: int) -> bool:
        return False

    patch(ByteCount, "exceeds", never)
