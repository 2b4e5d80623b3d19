"""A counter of AUTOINCREMENT that has moved without a row is taken for unchanged, so followers give its number out again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_change_capture.py::test_a_counter_that_moves_without_a_row_is_logged_beside_those_that_do_not"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ChangeCapture, "_are_counters", lambda *_: True)
