"""Counters of AUTOINCREMENT are not logged; followers derive them from the rows inserted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_counters_follow_though_no_row_shows_them"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(self: ChangeCapture, mark: int, before: dict[str, int]) -> dict[str, int]:
        return before

    patch(ChangeCapture, "end_transaction", nothing)
