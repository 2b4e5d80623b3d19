"""A parameter that is NaN reaches SQLite, which stores NULL for it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core import parameter_binding

TESTS = ["tests/unit/sql/core/test_parameter_binding.py::test_what_cannot_be_bound_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    bind = parameter_binding._value

    def bound(value: object, name: str) -> object:
        return value if isinstance(value, float) else bind(value, name)

    patch(parameter_binding, "_value", bound)
