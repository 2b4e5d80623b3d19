"""An update also checks values that it does not change, so rows of earlier releases can no longer be updated."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.executor import change_capture

TESTS = ["tests/unit/sql/core/test_value_checks.py::test_values_of_earlier_releases_stay_until_they_are_changed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = change_capture._TableCapture.broken

    def strict(self: change_capture._TableCapture, row: tuple[object, ...], old: tuple[object, ...] | None) -> SqlError | None:
        return right(self, row, None)

    patch(change_capture._TableCapture, "broken", strict)
