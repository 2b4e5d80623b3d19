"""The leader commits a change, and shows it to readers, before the log acknowledges it."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.engine.local_transaction import LocalTransaction
    from triplicate.sql.executor.statement_batches import PendingBatch

    append = Leadership._append_confirming
    commit = LocalTransaction.commit

    async def commit_first(self: Leadership, pending: PendingBatch) -> int:
        await commit(self._transaction, pending, self.writer.sent_position + len(pending.records))
        return await append(self, pending)

    async def record_nothing(self: LocalTransaction, pending: PendingBatch, end: int) -> None:
        return

    async def commit_once(self: LocalTransaction, pending: PendingBatch, end: int) -> None:
        if self._writer._connection.in_transaction:
            await commit(self, pending, end)

    async def run_no_further(self: LocalTransaction, run: object) -> None:
        run.requests = ()  # type: ignore[attr-defined]

    patch(Leadership, "_append_confirming", commit_first)
    patch(LocalTransaction, "record", record_nothing)
    patch(LocalTransaction, "commit", commit_once)
    patch(LocalTransaction, "run_further", run_no_further)
