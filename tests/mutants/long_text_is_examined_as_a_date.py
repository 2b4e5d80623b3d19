"""A text of any length is examined as a date, in time that grows with the square of its length."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core import datetime_text

TESTS = ["tests/unit/sql/core/test_datetime_text.py::test_a_long_text_is_refused_unread[slash]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(datetime_text, "LENGTH_MAX", 1_000_000_000)
