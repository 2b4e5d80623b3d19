"""The zone of a timestamp with time zone is ignored, so another instant is stored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from triplicate.sql.core import datetime_text

TESTS = ["tests/unit/sql/core/test_datetime_text.py::test_forms_of_postgresql_become_the_stored_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def none(zone: str | None) -> dt.timedelta:
        return dt.timedelta()

    patch(datetime_text, "_offset_of", none)
