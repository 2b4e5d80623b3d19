"""Rows captured by a failed statement are logged with the transaction."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_a_failed_statement_leaves_none_of_its_rows"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = ChangeCapture.cut

    def keep(self: ChangeCapture, mark: int) -> None:
        original(self, len(self.events) if mark else 0)

    patch(ChangeCapture, "cut", keep)
