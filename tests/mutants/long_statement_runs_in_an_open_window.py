"""A statement that may end the whole SQLite transaction, or last for long, runs on top of groups that are at the log."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.local_transaction import LocalTransaction
from triplicate.sql.executor.statement_batches import BatchRun

TESTS = [
    "tests/unit/sql/engine/test_leadership_group_windows.py::test_long_statements_and_schema_changes_wait_for_the_next_window",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def run_all(self: LocalTransaction, run: BatchRun) -> None:
        self._writer.begin_further()
        run.run_all(self._writer)

    patch(LocalTransaction, "run_further", run_all)
