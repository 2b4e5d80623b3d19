"""The number of a batch is noted in a transaction of its own, before the rows of the batch are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.spark.cluster.table_changes import _BatchAttempt

TESTS = [
    "tests/unit/spark/tables/test_table_writing.py::test_a_refused_row_leaves_nothing_of_its_batch",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    mark = _BatchAttempt._mark

    def noted_at_once(self: _BatchAttempt, connection: Any) -> bool:
        is_new = mark(self, connection)
        connection.execute("COMMIT")
        connection.execute("BEGIN")
        return is_new

    patch(_BatchAttempt, "_mark", noted_at_once)
