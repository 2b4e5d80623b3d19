"""Leading a database: statements are run, appended to the log, and made visible when the log has acknowledged them.

There is one SQLite transaction at a time. Single statements that wait are run together and share one log entry; an interactive
transaction holds the writer from its first writing statement to its end. Nobody else sees anything before the local commit, and the
local commit comes after the acknowledgement.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import Diverged, EnvironmentFault, RecordTooLarge, SqlError
from triplicate.runtime import Host, TaskScope, Timer, Worker, fault_point, shielded
from triplicate.sql.core.lease import Lease
from triplicate.sql.core.records import StatementResult
from triplicate.sql.executor.interrupts import StopFlag, TransactionLost, finish_or_stop
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import (
    AutocommitRequest,
    AutocommitResult,
    LateChanges,
    PendingBatch,
    WriterConnection,
)
from triplicate.sql.storage.sqlstates import from_sqlite
from triplicate.sql.storage.transaction_history import transaction_id


class LogAppender(Protocol):
    """What a leadership needs of `triplicate.log.LogWriter`."""

    @property
    def epoch(self) -> int: ...

    async def append_entry(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> range: ...

    async def noop(self) -> None: ...


class InteractiveTransaction:
    """A transaction that holds the writer. Made when its turn has come; used by one session, one call at a time."""

    def __init__(self, leadership: Leadership, settings: NodeSettings) -> None:
        self._leadership = leadership
        self._settings = settings
        self._busy = False
        self._expired: SqlError | None = None
        self._stop = StopFlag()
        self.confirmed = False
        """Whether the log has confirmed, since this transaction holds the writer, that this node leads."""
        self.command: asyncio.Future[tuple[str, Any]] = asyncio.get_running_loop().create_future()
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle_timer: Timer | None = None
        self._limit_timer = leadership.call_later(settings.transaction_limit_s, self._limit_reached)
        self._watch_idle()

    @property
    def over(self) -> bool:
        """True when it has ended, by whatever."""
        return self.command.done()

    @property
    def expired(self) -> SqlError | None:
        """Why it was ended by a limit, or None."""
        return self._expired

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of the writer's methods inside the transaction.

        Raises:
            SqlError: the statement failed; if `over`, the whole transaction did.
        """
        if self.command.done():
            raise self._expired or SqlError("25P02", "the transaction has ended")
        self._stop_idle()
        self._busy = True
        self._stop = StopFlag()
        try:
            # A statement that has begun is waited for: the next one must not meet it on the connection.
            running = self._leadership.start_on_writer(self._with_stop, self._stop, function, *arguments)
            return await finish_or_stop(running, self._stop)
        except apsw.Error as error:
            raise from_sqlite(error) from error
        except TransactionLost as lost:
            self._end("lost", None)
            raise lost.error from lost
        finally:
            self._busy = False
            if self._expired is not None:
                self._end("expired", self._expired)
            self._watch_idle()

    def _with_stop(self, stop: StopFlag, function: Callable[..., Any], *arguments: Any) -> Any:
        self._leadership.writer.limit.stop = stop
        return function(*arguments)

    def interrupt(self, reason: SqlError) -> None:
        """Interrupt the statement that runs, if one does."""
        if self._busy:
            self._stop.reason = reason

    async def commit(self, results: Sequence[StatementResult], request_id: str) -> None:
        """End it. Returns when the log has acknowledged it and it is visible.

        Raises:
            SqlError: it failed and nothing is kept; 08007: unknown.
        """
        if self.command.done():
            raise self._expired or SqlError("25P02", "the transaction has ended")
        self._end("commit", (tuple(results), request_id))
        await asyncio.shield(self.outcome)

    async def rollback(self) -> None:
        """Undo it; returns when the writer is free. Idempotent."""
        self._end("rollback", None)
        await asyncio.shield(self.outcome)

    def abandon(self) -> None:
        """Roll back without waiting."""
        self._end("rollback", None)

    def _end(self, command: str, argument: Any) -> None:
        self._stop_idle()
        self._limit_timer.cancel()
        if not self.command.done():
            self.command.set_result((command, argument))

    def settle(self, error: BaseException | None = None) -> None:
        """Called by the leadership when the transaction's outcome is known."""
        self._end("lost", None)
        if isinstance(error, SqlError):
            self.interrupt(error)  # The limit of the transaction has ended with it, so nothing else would.
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(None)
        else:
            self.outcome.set_exception(error)
            self.outcome.exception()

    def _watch_idle(self) -> None:
        if not self.command.done():
            self._idle_timer = self._leadership.call_later(self._settings.transaction_idle_s, self._idle_reached)

    def _stop_idle(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _idle_reached(self) -> None:
        limit_s = self._settings.transaction_idle_s
        self._expire(
            SqlError("25P03", f"the transaction held the writer and said nothing for {limit_s:g} s", hint="Keep transactions short.")
        )

    def _limit_reached(self) -> None:
        limit_s = self._settings.transaction_limit_s
        self._expire(SqlError("25P04", f"the transaction held the writer for {limit_s:g} s", hint="Use several shorter transactions."))

    def _expire(self, error: SqlError) -> None:
        self._expired = error
        if self._busy:
            self._stop.reason = error
        else:
            self._end("expired", error)


class _QueuedStatement:
    """A queued statement."""

    __slots__ = ("answer", "request")

    def __init__(self, request: AutocommitRequest) -> None:
        self.request = request
        self.answer: asyncio.Future[AutocommitResult] = asyncio.get_running_loop().create_future()


class _WriterClaim:
    """A queued wish to hold the writer."""

    __slots__ = ("granted", "number", "snapshot")

    def __init__(self, snapshot: int | None, number: int | None) -> None:
        self.snapshot = snapshot
        self.number = number
        self.granted: asyncio.Future[InteractiveTransaction] = asyncio.get_running_loop().create_future()


class Leadership:
    """One epoch of leading one database. `run` serves until the log refuses or leaves an outcome unknown.

    Args:
        worker: the database's writer thread. writer: its connection, used on that thread only.
        lease_s: see `core.lease`; 0 for none.
    """

    def __init__(
        self,
        host: Host,
        log: LogAppender,
        worker: Worker,
        writer: WriterConnection,
        numbers: TransactionIds,
        settings: NodeSettings,
        name: str,
        lease_s: float = 0.0,
    ) -> None:
        self._host = host
        self._log = log
        self._worker = worker
        self.writer = writer
        self.ids = numbers
        self._settings = settings
        self._name = name
        self._queue: deque[_QueuedStatement | _WriterClaim] = deque()
        self._work: asyncio.Future[None] | None = None
        self._waiting_reads: list[asyncio.Future[None]] = []
        self._pump: asyncio.Future[None] | None = None
        self._lease = Lease(lease_s)
        self._renewal_wanted = False
        self._current: InteractiveTransaction | None = None
        self._over: SqlError | None = None
        self.on_commit: Callable[[int, int], None] = lambda position, schema_version: None
        """Called after each local commit with the position and the schema's version."""

    # What sessions use.

    async def submit(self, request: AutocommitRequest) -> AutocommitResult:
        """Run one statement as a transaction of its own; returns when it is acknowledged and visible.

        Raises:
            SqlError: it failed and nothing is kept; 08007: its outcome is unknown.
        """
        self._check()
        if len(self._queue) >= self._settings.queue_limit:
            raise SqlError("53300", f"{self._settings.queue_limit} statements wait to be written already")
        single = _QueuedStatement(request)
        self._queue.append(single)
        self._wake()
        answer = await single.answer
        if answer.error is not None:
            raise answer.error
        return answer

    async def claim(self, snapshot: int | None, number: int | None, interrupted: asyncio.Future[None]) -> InteractiveTransaction:
        """Wait for the writer and hold it.

        Args:
            snapshot: the position the transaction has read at, None when it has read nothing.
            number: its number where ``pg_current_xact_id()`` was asked for.
            interrupted: fails when the client cancels.

        Raises:
            SqlError: 40001 when the database has moved since the snapshot, 55P03 when the writer was not free in time.
        """
        self._check()
        claim = _WriterClaim(snapshot, number)
        self._queue.append(claim)
        self._wake()
        wait_s = self._settings.writer_wait_s

        def give_up() -> None:
            _fail(claim.granted, SqlError("55P03", f"the writer of database {self._name!r} was not free within {wait_s:g} s"))

        timer = self.call_later(wait_s, give_up)
        interrupted.add_done_callback(lambda ended: _fail(claim.granted, ended.exception()) if not ended.cancelled() else None)
        try:
            return await claim.granted
        except asyncio.CancelledError:
            if claim.granted.done() and not claim.granted.cancelled() and claim.granted.exception() is None:
                claim.granted.result().abandon()
            raise
        finally:
            timer.cancel()

    async def confirm(self) -> None:
        """Return when whatever this node saw before the call may be answered: no other node had acknowledged anything by then.

        The order matters. A snapshot is there first and is confirmed afterwards, so a process that is held still in between does not
        answer from it once the lease has ended.

        Raises:
            SqlError: 57P01 when it leads no more.
        """
        self._check()
        now = self._host.clock.elapsed()
        if not self._lease.holds(now):
            await self.barrier()
        elif self._lease.renewal_due(now):
            self._renewal_wanted = True
            self._wake_pump()

    async def barrier(self) -> None:
        """Return when an append that was sent after this call has been acknowledged: proof that this node led meanwhile.

        Raises:
            SqlError: 57P01 when it leads no more.
        """
        self._check()
        proof: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_reads.append(proof)
        self._wake_pump()
        await proof

    async def noop(self) -> None:
        """Append what carries nothing. Its acknowledgement extends the lease."""
        sent_at = self._sending()
        await self._log.noop()
        self._acknowledged(sent_at)

    # What its parts use.

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._host.clock.call_at(self._host.clock.monotonic() + seconds, callback)

    def start_on_writer(self, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        return self._worker.run(function, *arguments)

    async def on_writer(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run something of the writer's on its thread.

        Raises:
            EnvironmentFault: SQLite failed where no statement of a client is to blame.
        """
        try:
            return await self._worker.run(function, *arguments)
        except apsw.Error as error:
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error

    def _check(self) -> None:
        if self._over is not None:
            raise self._over

    def _wake(self) -> None:
        if self._work is not None and not self._work.done():
            self._work.set_result(None)

    def _wake_pump(self) -> None:
        if self._pump is not None and not self._pump.done():
            self._pump.set_result(None)

    def _sending(self) -> float:
        """The time before an append is handed to the log, which may send it later, and again in another segment."""
        now = self._host.clock.elapsed()
        self._lease.sending(now)
        return now

    def _acknowledged(self, sent_at: float) -> None:
        self._lease.acknowledged(sent_at)

    # Serving.

    async def run(self) -> None:
        """Serve until the leadership ends, which is always by an error or by cancellation.

        Raises:
            LogFenced: another node leads. TriplicateError: the log cannot be written; nothing more is known.
        """
        try:
            async with TaskScope(f"leadership {self._name}") as scope:
                scope.spawn(self._confirm_reads(), name="confirm reads")
                await self._serve()
        finally:
            self._finish()
            await shielded(self.on_writer(self.writer.rollback))

    def _finish(self) -> None:
        """Answer everybody who still waits: nothing of theirs was sent."""
        self._over = self._not_leading()
        for item in self._queue:
            _fail(item.answer if isinstance(item, _QueuedStatement) else item.granted, self._over)
        self._queue.clear()
        if self._current is not None:
            self._current.settle(self._over)
        for proof in self._waiting_reads:
            _fail(proof, self._over)
        self._waiting_reads.clear()

    async def _serve(self) -> None:
        while True:
            while not self._queue:
                self._work = asyncio.get_running_loop().create_future()
                await self._work
            item = self._queue[0]
            if isinstance(item, _WriterClaim):
                self._queue.popleft()
                if not item.granted.done():
                    await self._interactive(item)
            else:
                await self._singles()

    async def _singles(self) -> None:
        """Run the single statements at the head of the queue as one batch."""
        batch: list[_QueuedStatement] = []
        while self._queue and len(batch) < self._settings.batch_limit:
            item = self._queue[0]
            if not isinstance(item, _QueuedStatement):
                break
            self._queue.popleft()
            if not item.answer.done():
                batch.append(item)
        if not batch:
            return
        pending: PendingBatch | None = None
        try:
            pending = ran = await self._run_batch(batch)
            await self._append_and_commit(ran)
        except SqlError as refusal:
            for single in batch:
                _fail(single.answer, refusal)
        except BaseException:
            self._lose(batch, pending)
            raise
        else:
            self._answer(batch, ran.answers)

    async def _run_batch(self, batch: Sequence[_QueuedStatement]) -> PendingBatch:
        requests = [single.request for single in batch]
        running = self._worker.run(self.writer.run_batch, requests)
        try:
            return await finish_or_stop(running, *(request.stop for request in requests), reason=self._not_leading())  # type: ignore[no-any-return]
        except apsw.Error as error:
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error

    def _answer(self, batch: Sequence[_QueuedStatement], answers: Sequence[AutocommitResult]) -> None:
        again: list[_QueuedStatement] = []
        for single, answer in zip(batch, answers, strict=True):
            if answer.outcome is None and answer.error is None:
                again.append(single)
            elif not single.answer.done():
                single.answer.set_result(answer)
        self._queue.extendleft(reversed(again))

    def _lose(self, batch: Sequence[_QueuedStatement], pending: PendingBatch | None) -> None:
        """The leadership was lost over this batch: what may be in the log is unknown, what cannot be is told so."""
        for index, single in enumerate(batch):
            number = None if pending is None else pending.answers[index].number
            _fail(single.answer, self._not_leading() if number is None else self._unknown(number))

    async def _append_and_commit(self, pending: PendingBatch) -> None:
        """The one place where a batch becomes durable and then visible.

        Raises:
            SqlError: the log refused the batch before sending it, or a batch without changes is not confirmed; it is rolled back.
        """
        if not pending.records:
            await self._answer_unchanged(pending)
            return
        reads, self._waiting_reads = self._waiting_reads, []
        try:
            end = await self._append(pending)
        except RecordTooLarge as error:
            self._waiting_reads = reads + self._waiting_reads
            await self.on_writer(self.writer.rollback)
            self._settle_numbers(pending, committed=False)
            raise SqlError("54000", str(error)) from error
        except BaseException:
            for proof in reads:
                _fail(proof, self._not_leading())
            # Its outcome is open, so the rollback to come must not note the number as one that came to nothing.
            self.writer.context.number = None
            raise
        for proof in reads:
            if not proof.done():
                proof.set_result(None)
        await self._commit_locally(pending, end)

    @fault_point("sql.append")
    async def _append(self, pending: PendingBatch) -> int:
        """Have the log acknowledge a batch; the offset after it."""
        sent_at = self._sending()
        offsets = await self._log.append_entry(pending.records, preamble=pending.preamble)
        self._acknowledged(sent_at)
        return offsets.stop

    async def _answer_unchanged(self, pending: PendingBatch) -> None:
        """Answers that change nothing are reads: they too must come from a node that leads."""
        try:
            await self.confirm()
        except SqlError:
            await shielded(self.on_writer(self.writer.rollback))
            raise
        await self._commit_locally(pending, self.writer.position)

    @fault_point("sql.local_commit")
    async def _commit_locally(self, pending: PendingBatch, end: int) -> None:
        """Make visible what the log has acknowledged and which ends at offset `end`."""
        try:
            await shielded(self.on_writer(self.writer.commit, pending, end))
        except BaseException as error:
            # The log has it, so the rollback to come must not note the number as one that came to nothing.
            self.writer.context.number = None
            if isinstance(error, LateChanges):
                raise Diverged(f"{error}: this copy holds what the log does not") from error
            raise
        self._settle_numbers(pending, committed=True)
        self.on_commit(self.writer.position, self.writer.schema_version)

    def _settle_numbers(self, pending: PendingBatch, *, committed: bool) -> None:
        for number in pending.numbers:
            self.ids.finish(number, committed=committed)

    def _not_leading(self) -> SqlError:
        return SqlError("57P01", f"this node does not lead database {self._name!r} any more", hint="Connect again to find the leader.")

    def _unknown(self, number: int) -> SqlError:
        return SqlError(
            "08007",
            "the outcome of the transaction is unknown: this node lost the leadership while it was being written",
            detail=f"The transaction's id is {transaction_id(self.ids.epoch, number)}.",
            hint="Connect again and ask pg_xact_status(id), or repeat it under the same triplicate.request_id.",
        )

    async def _interactive(self, claim: _WriterClaim) -> None:
        """Let one transaction hold the writer."""
        try:
            position = await shielded(self.on_writer(self.writer.begin, claim.number))
        except BaseException:
            _fail(claim.granted, self._not_leading())
            raise
        if claim.granted.done() or (claim.snapshot is not None and claim.snapshot != position):
            await shielded(self.on_writer(self.writer.rollback))
            _fail(
                claim.granted,
                SqlError(
                    "40001",
                    "could not serialize access: the database has changed since this transaction first read it",
                    detail=f"It read at position {claim.snapshot}, the database is at {position}.",
                    hint="Run the transaction again; BEGIN IMMEDIATE avoids this.",
                ),
            )
            return
        held = self._current = InteractiveTransaction(self, self._settings)
        claim.granted.set_result(held)
        try:
            command, argument = await held.command
            if command == "commit":
                await self._commit(held, *argument)
            elif command != "lost":
                await shielded(self.on_writer(self.writer.rollback))
        except BaseException:
            held.settle(self._not_leading())
            raise
        else:
            held.settle()
        finally:
            self._current = None

    async def _commit(self, held: InteractiveTransaction, results: Sequence[StatementResult], request_id: str) -> None:
        """Finish an interactive transaction. What the client did wrong is settled here, what ends the leadership is raised."""
        number: int | None = None
        try:
            pending = await shielded(self.on_writer(self.writer.finish, results, request_id))
            number = pending.numbers[0] if pending.numbers else None
            await self._append_and_commit(pending)
        except SqlError as error:
            await shielded(self.on_writer(self.writer.rollback))
            held.settle(error)
        except TransactionLost as lost:
            held.settle(lost.error)
        except BaseException:
            held.settle(self._not_leading() if number is None else self._unknown(number))
            raise

    async def _confirm_reads(self) -> None:
        """Send a no-op for reads that wait, or that the lease may go on; reads that come while it is on its way share the next, or ride
        on a batch sent before.
        """
        while True:
            while not self._waiting_reads and not self._renewal_wanted:
                self._pump = asyncio.get_running_loop().create_future()
                await self._pump
            self._renewal_wanted = False
            reads, self._waiting_reads = self._waiting_reads, []
            try:
                await self.noop()
            except BaseException:
                for proof in reads:
                    _fail(proof, self._not_leading())
                raise
            for proof in reads:
                if not proof.done():
                    proof.set_result(None)


def _fail(future: asyncio.Future[Any], error: BaseException | None) -> None:
    if error is not None and not future.done():
        future.set_exception(error)
        future.exception()
