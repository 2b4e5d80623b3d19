"""An update also checks values that it does not change, so rows of earlier releases can no longer be updated."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.executor.table_capture import TableCapture

TESTS = ["tests/unit/sql/core/test_value_checks.py::test_values_of_earlier_releases_stay_until_they_are_changed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = TableCapture.broken

    def strict(self: TableCapture, row: tuple[object, ...], old: tuple[object, ...] | None) -> SqlError | None:
        return right(self, row, None)

    patch(TableCapture, "broken", strict)
