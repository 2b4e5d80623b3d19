"""ON CONFLICT DO UPDATE changes a row that the same INSERT has stored, so the last row wins."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/core/test_value_checks.py::test_a_row_that_one_insert_stores_is_not_updated_by_it_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ChangeCapture, "_watch", lambda *_: None)
