"""Rows are captured before full-text tables have written the rows which they buffer until a savepoint."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_full_text_search_answers_the_same_on_a_follower"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def skip(self: ChangeCapture) -> None:
        return

    patch(ChangeCapture, "flush_virtual_tables", skip)
