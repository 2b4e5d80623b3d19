"""The only row of a transaction is logged with the rowid that it had, and not with the one it moved to."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.records import RowChange
from triplicate.sql.executor.captured_rows import CapturedRow, RowGroup

TESTS = ["tests/unit/sql/executor/test_change_capture.py::test_the_run_of_one_row_is_that_of_a_list_of_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    change_of = RowGroup.change_of

    def change_in_place(self: RowGroup, event: CapturedRow) -> RowChange | None:
        number, rowid, _, new, old = event
        return change_of(self, (number, rowid, rowid, new, old))

    patch(RowGroup, "change_of", change_in_place)
