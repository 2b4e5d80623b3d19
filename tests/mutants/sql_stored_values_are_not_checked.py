"""A value is stored although it does not fit its column's declared type."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = [
    "tests/unit/sql/core/test_value_checks.py::test_a_value_of_another_type_is_refused",
    "tests/unit/sql/core/test_value_checks.py::test_an_overflow_does_not_become_a_float",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def accept(self: ChangeCapture, *arguments: object) -> None:
        return

    patch(ChangeCapture, "_refuse", accept)
