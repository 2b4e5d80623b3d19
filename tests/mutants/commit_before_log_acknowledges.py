"""The leader commits a change, and shows it to readers, before the log acknowledges it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.local_transaction import LocalTransaction
from triplicate.sql.executor.statement_batches import BatchRun, PendingBatch
from triplicate.sql.executor.transaction_functions import TransactionIds

TESTS = [
    "tests/unit/sql/engine/test_leadership.py::test_nothing_is_visible_before_the_log_has_acknowledged_it",
    "tests/property/test_group_window_over_a_log.py::test_answers_and_rows_follow_the_acknowledgements",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    record, commit, begin = LocalTransaction.record, LocalTransaction.commit, LocalTransaction.begin

    async def record_and_commit(self: LocalTransaction, pending: PendingBatch, end: int) -> None:
        await record(self, pending, end)
        await commit(self, pending, end)

    async def commit_once(self: LocalTransaction, pending: PendingBatch, end: int) -> None:
        if self._writer._connection.in_transaction:
            await commit(self, pending, end)

    async def run_further(self: LocalTransaction, run: BatchRun) -> None:
        await begin(self)
        run.run_all(self._writer)

    patch(LocalTransaction, "record", record_and_commit)
    patch(LocalTransaction, "commit", commit_once)
    patch(LocalTransaction, "run_further", run_further)
    patch(TransactionIds, "commit", lambda *_: None)
