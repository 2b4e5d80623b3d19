"""The one SQLite transaction of a leader: on the event loop where its work is short, else on the writer's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from triplicate.errors import SqlError
from triplicate.runtime import fault_point
from triplicate.sql.core.batch_builder import TransactionParts
from triplicate.sql.core.writer_hold import EndRequest
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.statement_batches import BatchRun, PendingBatch

_REQUESTS_PER_TURN = 32
"""Requests of a batch that run in one turn of the loop; some 20 µs each."""


class LocalTransaction:
    """Begins, runs and ends the transaction. All methods raise EnvironmentFault when the local disk or file fails."""

    def __init__(self, thread: WriterThread) -> None:
        self._thread = thread
        self._writer = thread.writer

    @property
    def is_small(self) -> bool:
        """Whether the transaction may end on the loop. One that ran on the thread may have changed many pages, and undone it."""
        return self._thread.is_unused and self._writer.is_small

    async def begin(self, number: int | None = None) -> None:
        """Open it. See `WriterConnection.begin`."""
        self._thread.begin_use()
        if not self._thread.call(self._writer.try_begin, number):
            await self._thread.run(self._writer.begin, number)

    async def run_batch(self, run: BatchRun, cancellation: Callable[[], SqlError]) -> None:
        """Run short requests on the loop, some of them in each turn. From the first other request on, run the rest on the thread.

        Args:
            cancellation: makes the error of a request that runs while the caller is cancelled, which interrupts it.
        """
        while True:
            is_long = self._thread.call(run.run_short, self._writer, _REQUESTS_PER_TURN)
            if is_long:
                await self._thread.run(run.run_all, self._writer, on_cancel=partial(_interrupt, run, cancellation))
            if run.has_run:
                return
            await asyncio.sleep(0)

    @fault_point("sql.further_group")
    async def run_further(self, run: BatchRun) -> None:
        """Begin a further batch inside the transaction, see `WriterConnection.begin_further`, and run requests up to the first long one.

        The requests that have not run are dropped from `run`.
        """
        self._thread.call(self._writer.begin_further)
        is_long = False
        while not (is_long or run.has_run):
            is_long = self._thread.call(run.run_short, self._writer, _REQUESTS_PER_TURN)
            if not (is_long or run.has_run):
                await asyncio.sleep(0)
        run.requests = run.requests[: len(run.answers)]

    async def record(self, pending: PendingBatch, end: int) -> None:
        """Store the place of a batch that is at the log. See `WriterConnection.record`."""
        if self.is_small:
            self._thread.call(self._writer.record, pending, end)
        else:
            await self._thread.run(self._writer.record, pending, end)

    async def finish(self, request: EndRequest) -> PendingBatch:
        """Make the batch of a transaction of several statements. See `WriterConnection.finish`."""
        if self.is_small:
            return self._thread.call(self._writer.finish, request.results, request.request_id)
        pending: PendingBatch = await self._thread.run(self._writer.finish, request.results, request.request_id)
        return pending

    async def read_part(self, parts: TransactionParts, index: int) -> tuple[bytes, list[bytes]]:
        """A part of a transaction that is larger than an entry. See `TransactionParts.read`."""
        part: tuple[bytes, list[bytes]] = await self._thread.run(parts.read, index)
        return part

    async def commit(self, pending: PendingBatch, end: int) -> None:
        """Make it visible. See `WriterConnection.commit`."""
        if self.is_small and not self._writer.checkpointer.next_commit_syncs:
            self._thread.call(self._writer.commit, pending, end)
        else:
            await self._thread.run(self._writer.commit, pending, end)

    async def rollback(self) -> None:
        """Undo it; no effect when there is none."""
        if self.is_small:
            self._thread.call(self._writer.rollback)
        else:
            await self._thread.run(self._writer.rollback)

    async def checkpoint(self) -> bool:
        """Between two transactions, run the checkpoint that is due, if one is. Returns whether one was."""
        if not self._writer.checkpointer.is_due:
            return False
        await self._thread.run(self._writer.checkpoint)
        return True


def _interrupt(run: BatchRun, cancellation: Callable[[], SqlError]) -> None:
    for request in run.requests:
        request.stop.reason = request.stop.reason or cancellation()
