"""A change of a session that runs for many rows of parameters, which arrive in slices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from triplicate.sql.core.interface import TransactionStatus, Value
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.transaction_block import TransactionBlock, failed_transaction

RunMany = Callable[[Iterable[Sequence[Value]], list[int]], Awaitable[None]]


class SqlBulkChange:
    """See `interface.BulkChange`. Made by `SqlSession.bulk_change`.

    Args:
        call: the session's frame around each call of its client.
        run_many: runs the change in the session's open transaction, which holds the writer; see `WriterConnection.run_many`.
    """

    def __init__(self, call: AbstractContextManager[None], block: TransactionBlock, run_many: RunMany, *, is_one_statement: bool) -> None:
        self._call = call
        self._block = block
        self._run_many = run_many
        self._is_one_statement = is_one_statement
        self._changed = 0
        self.counts: list[int] = []

    async def run(self, rows: Iterable[Sequence[Value]]) -> None:
        with self._call:
            if self._block.status is TransactionStatus.FAILED:
                raise failed_transaction()
            self.counts = []
            if self._block.is_repeat:
                self._repeat(rows)
                return
            await self._run_many(rows, self.counts)
            self._changed += sum(self.counts)
            if not self._is_one_statement:
                for count in self.counts:
                    self._block.record(StatementResult(count, ()))

    def _repeat(self, rows: Iterable[Sequence[Value]]) -> None:
        """Answer runs that are stored already. The rows are iterated for their errors."""
        for _ in rows:
            self.counts.append(0 if self._is_one_statement else self._block.next_repeated().rows_affected)

    def finish(self) -> int:
        if not self._is_one_statement:
            return self._changed
        if self._block.is_repeat:
            return self._block.next_repeated().rows_affected
        self._block.record(StatementResult(self._changed, ()))
        return self._changed
