"""Leading a database: statements are run, appended to the log, and made visible when the log has acknowledged them.

There is one SQLite transaction at a time. Single statements that wait are run together as a group and share one log entry. While the entry
is at the log, further groups may run on top of it, each with an entry of its own (`core.group_window`). An interactive transaction holds
the writer from its first writing statement to its end. Nobody else sees anything before the local commit, and the local commit comes after
the acknowledgement of all entries.

Short statements, and the begin and commit of small transactions, run on the event loop, everything else on the writer's thread. A sync of
the local file never runs on the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import Diverged, EnvironmentFault, RecordTooLarge, SqlError
from triplicate.replica import LeaderReads
from triplicate.runtime import (
    Host,
    Spawn,
    TasklessFuture,
    TaskScope,
    Worker,
    deadline_after,
    fail,
    fault_point,
    has_result,
    resolve,
    start_eagerly,
    timeout_at,
)
from triplicate.sql.core.batch_builder import TransactionParts
from triplicate.sql.core.commit_notices import CommitNotices
from triplicate.sql.core.group_window import GroupWindow
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.transaction_numbers import transaction_id
from triplicate.sql.core.writer_hold import Ending, EndRequest
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.local_transaction import LocalTransaction
from triplicate.sql.engine.log_appender import LogAppender
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.change_capture import LateChanges
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.statement_batches import AutocommitRequest, BatchRun, PendingBatch, StatementOutcome
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection

DRAIN_END_S = 2.0
"""Time limit for the end of a transaction that a drain has ended."""


class _QueuedStatement:
    """A single statement that waits for its batch."""

    __slots__ = ("answer", "request")

    def __init__(self, request: AutocommitRequest) -> None:
        self.request = request
        self.answer: TasklessFuture[StatementOutcome] = TasklessFuture(loop=asyncio.get_running_loop())


class _StatementGroup:
    """Single statements that share one log entry."""

    __slots__ = ("began_s", "end", "pending", "sent_s", "statements")

    def __init__(self, statements: Sequence[_QueuedStatement], pending: PendingBatch, end: int, began_s: float, sent_s: float) -> None:
        self.statements = statements
        self.pending = pending
        self.end = end
        """The offset after its records, once the log has them."""
        self.began_s = began_s
        """When its statements began to run."""
        self.sent_s = sent_s
        """When it was sent to the log."""


class _WriterClaim:
    """A transaction that waits for the writer."""

    __slots__ = ("granted", "number", "snapshot", "waits")

    def __init__(self, snapshot: int | None, number: int | None, waits: StatementWaits) -> None:
        self.snapshot = snapshot
        self.number = number
        self.waits = waits
        self.granted: TasklessFuture[InteractiveTransaction] = TasklessFuture(loop=asyncio.get_running_loop())


class Leadership:
    """One epoch of leading one database. `run` serves until the log refuses or leaves an outcome unknown.

    Args:
        worker: the database's writer thread. writer: its connection, used on that thread only.
        lease_s: see `replica.core.lease`; 0 for none.
    """

    def __init__(
        self,
        host: Host,
        log: LogAppender,
        worker: Worker,
        writer: WriterConnection,
        ids: TransactionIds,
        settings: NodeSettings,
        name: str,
        lease_s: float = 0.0,
    ) -> None:
        self._clock = host.clock
        self._log = log
        self._thread = WriterThread(host.clock, worker, writer, name)
        self._transaction = LocalTransaction(self._thread)
        self.writer = writer
        self.ids = ids
        self._settings = settings
        self._name = name
        self._queue: deque[_QueuedStatement | _WriterClaim] = deque()
        self._queue_changed = asyncio.Event()
        self.reads = LeaderReads(host.clock, lease_s, log.noop, self._not_leading)
        self._current: InteractiveTransaction | None = None
        self.notices = CommitNotices()
        """Told of each commit that changes something."""
        self._over: SqlError | None = None
        self._drained: asyncio.Event | None = None
        """Set when nothing runs. None while transactions are accepted."""
        self.on_commit: Callable[[int, int], None] = lambda position, schema_version: None
        """Called with position and schema version after each local commit, and again after its checkpoint."""
        self.on_over: Callable[[], None] = lambda: None
        """Called once when the leadership is over, before any client can have learned of it. The writer is rolled back after it."""

    # For sessions.

    def submit(self, request: AutocommitRequest) -> asyncio.Future[StatementOutcome]:
        """Run one statement as a transaction of its own; the future has its outcome when it is acknowledged and visible.

        The future fails with SqlError where the statement has failed and nothing of it is stored; 08007: its outcome is unknown.

        Raises:
            SqlError: 57P01 when this node has ceased to lead, 53300 when too many statements wait.
        """
        if self._over is not None:
            raise self._over
        if len(self._queue) >= self._settings.queue_limit:
            raise SqlError("53300", f"{self._settings.queue_limit} statements wait to be written already")
        statement = _QueuedStatement(request)
        self._queue.append(statement)
        self._queue_changed.set()
        return statement.answer

    async def claim(
        self, snapshot: int | None, number: int | None, interrupted: asyncio.Future[None], waits: StatementWaits
    ) -> InteractiveTransaction:
        """Wait for the writer and hold it.

        Args:
            snapshot: the position at which the transaction has read, None when it has read nothing.
            number: its transaction number, None where it has none yet.
            interrupted: fails when the client cancels.
            waits: the waits of the transaction's statements are added to these.

        Raises:
            SqlError: 40001 when the database has moved since the snapshot, 55P03 when the writer was not free in time.
        """
        self._check()
        claim, began_s = _WriterClaim(snapshot, number, waits), waits.now()
        self._queue.append(claim)
        self._queue_changed.set()
        wait_s = self._settings.writer_wait_s

        def give_up() -> None:
            fail(claim.granted, SqlError("55P03", f"the writer of database {self._name!r} was not free within {wait_s:g} s"))

        timer = self._thread.call_later(wait_s, give_up)

        def interrupt(ended: asyncio.Future[None]) -> None:
            error = None if ended.cancelled() else ended.exception()
            if error is not None:
                fail(claim.granted, error)

        interrupted.add_done_callback(interrupt)
        try:
            return await claim.granted
        except asyncio.CancelledError:
            if has_result(claim.granted):
                claim.granted.result().abandon()
            raise
        finally:
            waits.writer_s += waits.now() - began_s
            timer.cancel()
            interrupted.remove_done_callback(interrupt)

    async def drain(self, limit_s: float) -> bool:
        """Begin no further transaction, and wait until none runs. Those that come meanwhile wait for the end of the leadership.

        Args:
            limit_s: the transaction that holds the writer for longer is ended, with 57P01.

        Returns:
            False if a single statement runs for longer. Transactions are begun again then.
        """
        drained = self._drained = asyncio.Event()
        self._queue_changed.set()
        is_drained = False
        try:
            is_drained = await self._wait_drained(drained, limit_s)
            if not is_drained and self._current is not None:
                self._current.expire(self._not_leading())
            is_drained = is_drained or await self._wait_drained(drained, DRAIN_END_S)
        finally:
            if not is_drained:
                self._drained = None
                self._queue_changed.set()
        return is_drained

    async def _wait_drained(self, drained: asyncio.Event, limit_s: float) -> bool:
        with suppress(TimeoutError):
            async with timeout_at(deadline_after(self._clock, limit_s)):
                await drained.wait()
        return drained.is_set()

    def _check(self) -> None:
        if self._over is not None:
            raise self._over

    def make_readable(self) -> None:
        """A session asks for the position, for another one that reads on a follower: let followers see it now."""
        self._log.make_readable()

    # Serving.

    async def run(self) -> None:
        """Serve until the leadership ends, which is always by an error or by cancellation.

        Raises:
            LogFenced: another node leads. TriplicateError: the log cannot be written; nothing more is known.
        """
        try:
            async with TaskScope(f"leadership {self._name}") as scope:
                scope.spawn(self.reads.run(), name="confirm reads")
                scope.spawn(self._serve_until_over(scope), name="serve")
        finally:
            self._finish()
            await self._thread.run(self.writer.rollback)

    async def _serve_until_over(self, scope: TaskScope) -> None:
        try:
            await self._serve(scope)
        finally:
            # In the same turn of the event loop as the answers: a client that connects again at once must not find a leader here.
            self._finish()

    def _finish(self) -> None:
        """Fail everything that still waits; nothing of it was sent. Idempotent."""
        if self._over is not None:
            return
        self._over = self._not_leading()
        for item in self._queue:
            fail(item.answer if isinstance(item, _QueuedStatement) else item.granted, self._over)
        self._queue.clear()
        if self._current is not None:
            self._current.resolve(self._over)
        self.reads.close()
        self.on_over()

    async def _serve(self, scope: TaskScope) -> None:
        spawn = partial(scope.spawn, name="group")
        while True:
            while not self._queue or self._drained is not None:
                if self._drained is not None:
                    self._drained.set()
                self._queue_changed.clear()
                await self._queue_changed.wait()
            item = self._queue[0]
            if isinstance(item, _WriterClaim):
                self._queue.popleft()
                if not item.granted.done():
                    await self._run_interactive(item)
            else:
                await self._run_window(spawn)
            await self._checkpoint()

    async def _run_window(self, spawn: Spawn[None]) -> None:
        """Run the single statements at the head of the queue as groups, commit all of them at once, and answer."""
        window: GroupWindow[_StatementGroup] = GroupWindow(self._settings.batch_limit)
        try:
            try:
                await self._run_groups(window, spawn)
            finally:
                self._count_waits(window.groups)
            await self._commit_window(window.groups)
        except BaseException:
            for group in window.groups:
                self._fail_statements(group.statements, group.pending)
            raise
        self._answer(window.groups)

    async def _run_groups(self, window: GroupWindow[_StatementGroup], spawn: Spawn[None]) -> None:
        """Run groups until the log has acknowledged all of them, and no further one may be sent."""
        while True:
            self._queue_changed.clear()
            if window.accepts(self._waiting_statements()):
                await self._run_group(window, spawn)
            elif window.may_be_committed:
                return
            else:
                # An acknowledgement is a change as well.
                await self._queue_changed.wait()

    def _count_waits(self, groups: Sequence[_StatementGroup]) -> None:
        """The log has acknowledged the groups of a window, or the leadership has ended: their statements have waited until now."""
        now = self._clock.monotonic()
        for group in groups:
            for statement, answer in zip(group.statements, group.pending.answers, strict=True):
                waits = statement.request.waits
                # One that runs again waits for the writer until its next group.
                if waits is not None and waits.began_s and (answer.outcome is not None or answer.error is not None):
                    waits.writer_s += group.began_s - waits.began_s
                    waits.log_s += now - group.sent_s

    def _waiting_statements(self) -> int:
        """The number of single statements before the next claim, which waits for the window's end. None are begun by a drain."""
        if self._drained is not None:
            return 0
        if self._queue and isinstance(self._queue[0], _WriterClaim):
            return 0
        return len(self._queue)

    def _next_statements(self) -> list[_QueuedStatement]:
        """Remove the single statements at the head of the queue, without those whose clients have gone."""
        statements: list[_QueuedStatement] = []
        while self._queue and len(statements) < self._settings.batch_limit:
            item = self._queue[0]
            if not isinstance(item, _QueuedStatement):
                break
            self._queue.popleft()
            if not item.answer.done():
                statements.append(item)
        return statements

    async def _run_group(self, window: GroupWindow[_StatementGroup], spawn: Spawn[None]) -> None:
        """Run the statements that wait as one group, and send it to the log."""
        statements = self._next_statements()
        if not statements:
            return
        is_further, began_s = bool(window.groups), self._clock.monotonic()
        try:
            run = BatchRun([statement.request for statement in statements])
            if is_further:
                await self._transaction.run_further(run)
            else:
                await self._transaction.begin()
                await self._transaction.run_batch(run, self._not_leading)
            pending = self.writer.end_batch(run)
        except BaseException:
            self._fail_statements(statements, None)
            raise
        if is_further and len(run.answers) < len(statements):
            # A long statement would keep the groups before it waiting: it begins the next window.
            self._queue.extendleft(reversed(statements[len(run.answers) :]))
            window.drain()
            if not run.answers:
                return
        if self.writer.has_altered_schema or any(answer.runs_again for answer in run.answers):
            window.drain()
        end = self.writer.sent_position + pending.count
        group = _StatementGroup(statements[: len(run.answers)], pending, end, began_s, self._clock.monotonic())
        window.send(group, len(group.statements), sum(map(len, pending.records)))
        if not pending.count:
            start_eagerly(self._confirm_group(window, group), spawn)
            return
        try:
            start_eagerly(self._append_further(window, group) if is_further else self._append_group(window, group), spawn)
        except RecordTooLarge as error:
            await self._refuse_group(window, group, error)
            return
        if self._log.next_offset < group.end:
            window.drain()  # The log has no room for it now. An entry behind it might be given its place.
        await self._transaction.record(pending, group.end)

    async def _append_group(self, window: GroupWindow[_StatementGroup], group: _StatementGroup) -> None:
        """Have the log acknowledge a group."""
        end = await self._append_confirming(group.pending)
        if end != group.end:
            raise EnvironmentFault(f"the log gave a batch the offsets up to {end}, where {group.end} was expected")
        window.acknowledge(group)
        self._queue_changed.set()

    @fault_point("sql.further_append")
    async def _append_further(self, window: GroupWindow[_StatementGroup], group: _StatementGroup) -> None:
        """As `_append_group`, for a group that is not the first of its window."""
        await self._append_group(window, group)

    async def _confirm_group(self, window: GroupWindow[_StatementGroup], group: _StatementGroup) -> None:
        """Answers that change nothing are reads: they too must come from a node that leads."""
        await self.reads.confirm()
        window.acknowledge(group)
        self._queue_changed.set()

    async def _refuse_group(self, window: GroupWindow[_StatementGroup], group: _StatementGroup, error: RecordTooLarge) -> None:
        """The log has refused a group before sending it: undo it alone."""
        window.refuse(group)
        if window.groups:
            self._thread.call(self.writer.undo_further)
        else:
            await self._transaction.rollback()
        self._abort_numbers(group.pending)
        for statement in group.statements:
            fail(statement.answer, SqlError("54000", str(error)))

    async def _commit_window(self, groups: Sequence[_StatementGroup]) -> None:
        if groups:
            await self._commit_locally([group.pending for group in groups], groups[-1].end)

    def _answer(self, groups: Sequence[_StatementGroup]) -> None:
        again: list[_QueuedStatement] = []
        for group in groups:
            for statement, answer in zip(group.statements, group.pending.answers, strict=True):
                if answer.outcome is not None:
                    resolve(statement.answer, answer.outcome)
                elif answer.error is not None:
                    fail(statement.answer, answer.error)
                else:
                    again.append(statement)
        self._queue.extendleft(reversed(again))

    def _fail_statements(self, statements: Sequence[_QueuedStatement], pending: PendingBatch | None) -> None:
        """The leadership ended during a group. The outcome of a statement with a number is unknown; others were not sent.

        Args:
            pending: None where the group was not sent.
        """
        for index, statement in enumerate(statements):
            number = None if pending is None else pending.answers[index].number
            fail(statement.answer, self._not_leading() if number is None else self._unknown(number))

    async def _append_and_commit(self, pending: PendingBatch, waits: StatementWaits) -> None:
        """Make the batch of an interactive transaction durable and then visible.

        Raises:
            SqlError: the log refused the batch before sending it, or a batch without changes is not confirmed; it is rolled back.
        """
        if not pending.count:
            await self._confirm_unchanged(pending)
            return
        sent_s = waits.now()
        try:
            end = await self._append_confirming(pending)
        except RecordTooLarge as error:
            await self._transaction.rollback()
            self._abort_numbers(pending)
            raise SqlError("54000", str(error)) from error
        finally:
            waits.log_s += waits.now() - sent_s
        await self._commit_locally([pending], end)

    async def _append_confirming(self, pending: PendingBatch) -> int:
        """Have the log acknowledge a batch, which confirms the reads that wait; the offset after it."""
        sent = self.reads.send()
        try:
            end = await self._append(pending)
        except RecordTooLarge:
            self.reads.refuse(sent)
            raise
        except BaseException:
            self.reads.fail(sent)
            # Its outcome is open, so the rollback that follows must not record the number as aborted.
            self.writer.context.number = None
            raise
        self.reads.acknowledge(sent)
        return end

    @fault_point("sql.append")
    async def _append(self, pending: PendingBatch) -> int:
        """Have the log acknowledge a batch; the offset after it."""
        if pending.parts is not None:
            return (await self._log.append_listed(self._parts(pending.parts))).stop
        offsets = await self._log.append_entry(pending.records, preamble=pending.preamble)
        return offsets.stop

    async def _parts(self, parts: TransactionParts) -> AsyncIterator[tuple[bytes, list[bytes]]]:
        """The entries of a transaction that is larger than one."""
        for index in range(parts.count):
            yield await self._transaction.read_part(parts, index)

    async def _confirm_unchanged(self, pending: PendingBatch) -> None:
        """Answers that change nothing are reads: they too must come from a node that leads."""
        try:
            await self.reads.confirm()
        except SqlError:
            await self._transaction.rollback()
            raise
        await self._commit_locally([pending], self.writer.position)

    @fault_point("sql.local_commit")
    async def _commit_locally(self, batches: Sequence[PendingBatch], end: int) -> None:
        """Make batches visible that the log has acknowledged. The last one ends at offset `end`."""
        try:
            await self._transaction.commit(batches[-1], end)
        except BaseException as error:
            # The log has it, so the rollback that follows must not record the number as aborted.
            self.writer.context.number = None
            if isinstance(error, LateChanges):
                raise Diverged(f"{error}: this copy holds what the log does not") from error
            raise
        for pending in batches:
            self.ids.commit(pending.numbers)
        self.on_commit(self.writer.position, self.writer.schema_version)
        if any(pending.count for pending in batches):
            sent = [one for pending in batches for one in pending.notifications]
            self.notices.publish(self.writer.position, sent, partial(_changed_tables, batches))

    async def _checkpoint(self) -> None:
        """Between two transactions, run the checkpoint that is due."""
        if await self._transaction.checkpoint():
            self.on_commit(self.writer.position, self.writer.schema_version)

    def _abort_numbers(self, pending: PendingBatch) -> None:
        for number in pending.numbers:
            self.ids.finish(number, committed=False)

    def _not_leading(self) -> SqlError:
        return SqlError("57P01", f"this node does not lead database {self._name!r} any more", hint="Connect again to find the leader.")

    def _unknown(self, number: int) -> SqlError:
        return SqlError(
            "08007",
            "the outcome of the transaction is unknown: this node lost the leadership while it was being written",
            detail=f"The transaction's id is {transaction_id(self.ids.epoch, number)}.",
            hint="Connect again and ask pg_xact_status(id), or repeat it under the same triplicate.request_id.",
        )

    async def _run_interactive(self, claim: _WriterClaim) -> None:
        """Let one transaction hold the writer."""
        try:
            await self._transaction.begin(claim.number)
        except BaseException:
            fail(claim.granted, self._not_leading())
            raise
        position = self.writer.position
        if claim.granted.done() or (claim.snapshot is not None and claim.snapshot != position):
            await self._transaction.rollback()
            fail(
                claim.granted,
                SqlError(
                    "40001",
                    "could not serialize access: the database has changed since this transaction first read it",
                    detail=f"It read at position {claim.snapshot}, the database is at {position}.",
                    hint="Run the transaction again; BEGIN IMMEDIATE avoids this.",
                ),
            )
            return
        held = self._current = InteractiveTransaction(self._thread, self._settings, self.reads.confirm, claim.waits)
        resolve(claim.granted, held)
        try:
            request = await held.end_request
            if request.ending is Ending.COMMIT:
                await self._commit(held, request)
            elif request.ending is not Ending.LOST:
                await self._transaction.rollback()
        except BaseException:
            held.resolve(self._not_leading())
            raise
        else:
            if self._queue and isinstance(self._queue[0], _WriterClaim):
                # The next transaction runs its first statement before the answer of this one is made, since others wait for its end.
                asyncio.get_running_loop().call_soon(held.resolve)
            else:
                held.resolve()
        finally:
            self._current = None

    async def _commit(self, held: InteractiveTransaction, request: EndRequest) -> None:
        """Finish an interactive transaction. An error of the client is its outcome; an error that ends the leadership is raised."""
        number: int | None = None
        try:
            pending = await self._transaction.finish(request)
            number = pending.numbers[0] if pending.numbers else None
            await self._append_and_commit(pending, held.waits)
        except SqlError as error:
            await self._transaction.rollback()
            held.resolve(error)
        except TransactionLost as lost:
            held.resolve(lost.error)
        except BaseException:
            held.resolve(self._not_leading() if number is None else self._unknown(number))
            raise


def _changed_tables(batches: Sequence[PendingBatch]) -> list[str]:
    return list(dict.fromkeys(name for pending in batches for name in pending.changed_tables()))
