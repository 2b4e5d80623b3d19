"""The rows that DROP TABLE changes in other tables are not logged once they are spooled."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = [
    "tests/unit/sql/executor/test_writer_connection_large_transactions.py::test_rows_that_a_dropped_table_takes_along_are_kept",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = ChangeCapture.keep_only

    def keep_only(self: ChangeCapture, mark: int, names: frozenset[str]) -> None:
        honest(self, mark, frozenset() if self.spooled.pieces else names)

    patch(ChangeCapture, "keep_only", keep_only)
