"""The leader's writing connection: statements run inside one open SQLite transaction and become records of the log.

Everything here blocks. One thread at a time uses the connection: the database's writer thread, or the event loop's for short statements
and small transactions, while the other has nothing to do with it. The caller appends what `end_batch` or `finish` returns to the log. It
then calls `commit` with the offset reached, or `rollback`.

Several batches of short statements may run in one transaction: while one is at the log, `record` stores its place, `begin_further` begins
the next. One commit makes all of them visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import apsw

from triplicate.errors import EnvironmentFault, SqlError
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.batch_builder import DEFAULT_TRANSACTION_BYTES, MAX_TRANSACTION_BYTES, BatchBuilder, BatchFit
from triplicate.sql.core.batch_sequence import BatchSequence
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row, SchemaMoved, StatementKind
from triplicate.sql.core.notifications import notifications_of
from triplicate.sql.core.records import BatchHeader, Transaction, encode_operations
from triplicate.sql.core.request_results import repeated_result
from triplicate.sql.core.schema_versions import RollbackPoint, SchemaVersion, SchemaVersions
from triplicate.sql.core.statement_results import StatementResult, encode_results
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.executor.authorizer import Authorizer, check_width
from triplicate.sql.executor.change_capture import ChangeCapture, Counters, LateChanges
from triplicate.sql.executor.change_runner import ChangeRunner
from triplicate.sql.executor.interrupts import StatementLimit, TransactionLost
from triplicate.sql.executor.request_checks import RequestChecks
from triplicate.sql.executor.short_reads import next_rows
from triplicate.sql.executor.short_statements import ShortStatements
from triplicate.sql.executor.spooled_changes import SMALLER
from triplicate.sql.executor.staged_parts import StagedParts
from triplicate.sql.executor.statement_batches import (
    NOTHING,
    AutocommitRequest,
    AutocommitResult,
    BatchRun,
    BatchSize,
    PendingBatch,
    StatementOutcome,
)
from triplicate.sql.executor.statement_rights import StatementRights
from triplicate.sql.executor.stored_access import StoredAccess
from triplicate.sql.executor.transaction_functions import TransactionContext, TransactionIds
from triplicate.sql.executor.violations import with_violation
from triplicate.sql.storage.local_copies import is_local_fault
from triplicate.sql.storage.sqlite_file import ConnectionSetup, full_image_tables, open_writer, read_state, record_batch
from triplicate.sql.storage.sqlite_schema import check_references, schema_digest
from triplicate.sql.storage.sqlstates import FAULTS, from_sqlite
from triplicate.sql.storage.transaction_history import CommitRecord, RequestLimits, StoredResult, read_history
from triplicate.sql.storage.wal_checkpointer import BUSY_TIMEOUT_MS, WalCheckpointer

Result = TypeVar("Result")

_PROGRESS_STEPS = 5000


def _register(setup: ConnectionSetup | None, connection: apsw.Connection) -> None:
    if setup is not None:
        setup(connection)
    TransactionContext().register(connection)


class WriterConnection:
    """One SQLite transaction at a time on the leader's connection."""

    def __init__(
        self,
        path: str,
        ids: TransactionIds,
        setup: ConnectionSetup | None = None,
        *,
        now: Callable[[], float] = lambda: 0.0,
        limit_s: float = float("inf"),
        wall_us: Callable[[], int] = lambda: 0,
        request_limits: RequestLimits | None = None,
        checkpointer: WalCheckpointer | None = None,
        functions: ConnectionSetup | None = None,
        checks_definitions: bool = True,
        max_bytes: int = DEFAULT_TRANSACTION_BYTES,
    ) -> None:
        """
        Args:
            now: a clock in seconds that never goes back.
            limit_s: the longest time, in seconds, that a statement of a batch may run, as all others wait for it.
            wall_us: µs since the epoch; the log's own time follows it, without ever going back.
            checkpointer: of the connection. Its checkpoints are deferred, see `checkpoint`.
            functions: registers the functions of `setup` on another connection, which finds the rights of statements.
            checks_definitions: whether views and triggers that cannot be computed are refused.
            max_bytes: upper bound on the encoded changes of one transaction.
        """
        limits = request_limits or RequestLimits()
        self.context = TransactionContext()
        self.context.ids = self._ids = ids
        self._connection = connection = open_writer(path, setup)
        self.context.register(connection)
        self.authorizer = Authorizer(connection)
        state, schema = read_state(connection), schema_digest(connection)
        self._schema = SchemaVersions(SchemaVersion(state.schema_version, schema))
        self._capture = ChangeCapture(connection, max_bytes, self._schema.marks)
        self._access = StoredAccess(connection, self._capture.add)
        self._changes = ChangeRunner(
            connection, self.authorizer, self._capture, self._schema, self._access, checks_definitions=checks_definitions
        )
        self.rights = StatementRights(connection, partial(_register, functions))
        batch = state.batch if state.epoch == ids.epoch else 0
        time_ms = read_history(connection).time_ms
        self._sequence = BatchSequence(state.database, ids.epoch, batch, state.position, time_ms, limits.keep_ms)
        self._builder = BatchBuilder(self._header)
        self._requests = RequestChecks(connection, limits)
        self._short = ShortStatements(connection)
        self.checkpointer = checkpointer or WalCheckpointer(0)
        self._wall_us = wall_us
        self._counters = Counters(self._capture.counters())
        self._sent = NOTHING
        """Size of the batches of the open transaction that `record` has stored."""
        self._open_results: WeakSet[apsw.Cursor] = WeakSet()
        """Cursors of the transaction's reading statements."""
        self.limit = StatementLimit(now, limit_s)
        self._local_fault: Exception | None = None
        """The fault of the local disk or file that a statement has met."""
        connection.set_progress_handler(self._must_stop, _PROGRESS_STEPS)

    def close(self) -> None:
        """Roll back and close. Idempotent."""
        self._connection.preupdate_hook(None)
        self._capture.spooled.close()
        self.rights.close()
        self._connection.close(True)

    @property
    def position(self) -> int:
        """The offset after the last committed log record."""
        return self._sequence.position

    @property
    def schema_version(self) -> int:
        """Of the last commit."""
        return self._schema.committed.number

    @property
    def current_schema_version(self) -> int:
        """Of the open transaction. For its own session only, and only while no statement of it runs."""
        return self._schema.current.number

    @property
    def has_altered_schema(self) -> bool:
        """Whether the open transaction has another schema than the last commit. For its own session, as `current_schema_version`."""
        return self._schema.current != self._schema.committed

    @property
    def access(self) -> AccessRights:
        """The roles and rights of the last commit."""
        return self._access.committed

    @property
    def current_access(self) -> AccessRights:
        """Those of the open transaction. For its own session, as `current_schema_version`."""
        return self._access.current

    # For the event loop, while no other thread uses the connection.

    def is_short(self, prepared: Prepared, parameters: Sequence[Value]) -> bool:
        """Whether a statement ends after few steps, so that it may run on the event loop.

        No statement is short after the open transaction has altered the schema, or roles or rights.
        """
        if self.has_altered_schema or self._access.is_changed:
            return False
        return self._short.includes(prepared, parameters, self._schema.committed.number)

    @property
    def is_small(self) -> bool:
        """Whether the open transaction has changed little, so that its commit or rollback is short."""
        return self._size.is_small and not self.has_altered_schema and not self._access.is_changed

    @property
    def _size(self) -> BatchSize:
        captured, size_bytes = self._capture, self._builder.size_bytes + self._capture.spooled.size_bytes
        return BatchSize(self._sent.changes + captured.count, self._sent.size_bytes + size_bytes)

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database's file, see `WalCheckpointer`. No transaction may be open."""
        self.checkpointer.run(self._connection)

    def stored_result(self, request_id: str) -> StoredResult | None:
        """The stored results of a request id, or None when the request may run; raises as `RequestChecks.check`."""
        stored = self._requests.find(request_id)
        if stored is None:
            self._requests.check(request_id, self._sequence.time_ms)
        return stored

    def query(self, function: Callable[[apsw.Connection, str], Any], table: str) -> Any:
        """Call one of `sqlite_schema`'s functions, such as `columns_of`, on the connection."""
        return function(self._connection, table)

    # The life of the one transaction.

    def begin(self, number: int | None = None) -> int:
        """Open the transaction; the position at which it stands.

        Args:
            number: the transaction's number, where it has one already.

        Raises:
            EnvironmentFault: an earlier statement has met a fault of the local disk or file, so another node should lead.
        """
        if self._local_fault is not None:
            raise EnvironmentFault(f"the local copy cannot be written: {self._local_fault}") from self._local_fault
        assert self._sequence.sent_position == self._sequence.position, "batches that are at the log were rolled back"
        self._connection.execute("begin immediate")
        self._schema.begin()
        self._access.begin()
        self._sent = NOTHING
        self._begin_batch()
        self.context.number = number
        return self._sequence.position

    def _begin_batch(self) -> None:
        self._builder = BatchBuilder(self._header)
        self._capture.begin(self._builder.dictionary)
        self._requests.begin()
        self._sequence.begin(self._wall_us() // 1000)

    def begin_further(self) -> None:
        """Begin a further batch inside the open transaction, while those before it are at the log. Its requests must be short."""
        self._connection.execute("savepoint triplicate_batch")
        self._counters.before = self._counters.current
        self._begin_batch()

    def undo_further(self) -> None:
        """Undo the batch that `begin_further` began, which the log has refused."""
        self._connection.execute("rollback to triplicate_batch")
        self._counters.current = self._counters.before
        self._begin_batch()

    def record(self, pending: PendingBatch, end: int) -> None:
        """Store that a batch with records is in the log, where it ends at offset `end`. It counts once it is committed."""
        record_batch(self._connection, self._commit_record(pending, end))
        self._sequence.send(end, 1 if pending.parts is None else pending.count)
        self._sent = self._size

    @property
    def sent_position(self) -> int:
        """The offset at which the next batch begins."""
        return self._sequence.sent_position

    def try_begin(self, number: int | None = None) -> bool:
        """As `begin`, but where another process writes the file, return False instead of waiting for it."""
        self._connection.set_busy_timeout(0)
        try:
            self.begin(number)
        except apsw.BusyError:
            return False
        finally:
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        return True

    def rollback(self) -> None:
        """Undo the transaction; no effect when there is none."""
        self.limit.clear()
        self._close_results()
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._schema.begin()
        self._access.begin()
        self._counters.current = self._counters.committed
        self._abort_number()
        self._undo(self._schema.committed_point())

    def commit(self, pending: PendingBatch, end: int) -> None:
        """Make the transaction visible: the log has acknowledged its last batch and all before, and ends at offset `end` now.

        The batch is recorded unless it has been.

        Raises:
            LateChanges: this copy must not be used any more.
        """
        self._capture.begin()
        if self._open_results:
            self._close_results()
        if end != self._sequence.sent_position:
            self.record(pending, end)
        self._connection.execute("commit")
        if self._capture.events or self._capture.unknown:
            raise LateChanges("rows were changed while the transaction committed")
        self._sequence.commit()
        self._schema.commit()
        self._access.commit()
        self._counters.committed = self._counters.current
        if self.context.number is not None:
            self._ids.finish(self.context.number, committed=True)
            self.context.number = None

    def _commit_record(self, pending: PendingBatch, end: int) -> CommitRecord:
        sequence, parts = self._sequence, pending.parts
        return CommitRecord(
            self._ids.epoch,
            sequence.next_batch + (0 if parts is None else parts.count - 1),
            end - (len(pending.records) if parts is None else 1),
            end,
            self._schema.current.number,
            pending.numbers,
            pending.requests,
            sequence.time_ms,
            sequence.forget_before_ms,
        )

    def _close_results(self) -> None:
        # SQLite leaves them open at the end of a transaction. Their snapshot would hold the write-ahead log back until they are closed.
        for cursor in list(self._open_results):
            cursor.close(True)

    # Savepoints of the user.

    def savepoint(self, name: str) -> None:
        with self.limit.paused():
            self._capture.prepare()
        self._connection.execute(f'savepoint "user {self._schema.depth}"')
        self._schema.save(name, self._capture.mark())

    def release(self, name: str) -> None:
        level = self._schema.level_of(name)
        self._connection.execute(f'release "user {level}"')
        self._schema.release(level)

    def rollback_to(self, name: str) -> None:
        level = self._schema.level_of(name)
        with self.limit.paused():
            self._connection.execute(f'rollback to "user {level}"')
            self._undo(self._schema.back_to(level))

    # Statements.

    def run(self, prepared: Prepared, parameters: Sequence[Value], role: str | None = None) -> StatementOutcome:
        """Run one changing statement. On an error all it did is undone.

        Args:
            role: runs it; None for the administrator.

        Raises:
            SqlError: it failed. TransactionLost: it failed, and SQLite ended the whole transaction.
        """
        return self._run_undoable(prepared.sql, partial(self._changes.run, prepared, parameters, role))

    def run_many(self, prepared: Prepared, rows: Iterable[Sequence[Value]], counts: list[int]) -> None:
        """Run one change without a result for many rows of parameters. On an error, nothing of it is stored.

        Args:
            rows: the parameters of each run. Each row is fetched after the run of the row before it.
            counts: to it, each run without an error appends the number of rows that it has changed.

        Raises:
            SqlError: a run has failed, or `rows` has raised it. TransactionLost: so it was, and SQLite ended the whole transaction.
        """
        self._run_undoable(prepared.sql, partial(self._changes.run_each, prepared.sql, rows, counts))

    def _run_undoable(self, sql: str, work: Callable[[], Result]) -> Result:
        """Run a statement's work inside of a savepoint. Raises as `run`."""
        with self.limit.paused():
            self._capture.prepare(sql)
            self._changes.save()
        before = self._schema.point(self._capture.mark())
        try:
            result = work()
            self._changes.keep()
        except FAULTS as error:
            failure = self._failure(error, sql)
            self._undo_statement(before, failure)
            raise failure from error
        return result

    def read(self, prepared: Prepared, parameters: Sequence[Value]) -> apsw.Cursor:
        """Start a reading statement inside the transaction; the caller fetches from the cursor and closes it."""
        cursor = self._connection.cursor()
        try:
            with self.authorizer.running(StatementKind.READ, explain=prepared.tag == "EXPLAIN"):
                cursor.execute(prepared.sql, tuple(parameters))
                check_width(cursor, prepared)
        except FAULTS as error:
            cursor.close(True)
            raise self._read_failure(error, prepared.sql) from error
        self._open_results.add(cursor)
        return cursor

    def fetch(self, cursor: apsw.Cursor, max_rows: int) -> tuple[list[Row], bool]:
        """The next rows of a reading statement, as `next_rows`."""
        try:
            with self.authorizer.running(StatementKind.READ):
                return next_rows(cursor, max_rows)
        except FAULTS as error:
            raise self._read_failure(error, None) from error

    # Failures.

    def _must_stop(self) -> bool:
        return self.limit.is_reached or self._capture.overflowing

    def _failure(self, error: Exception, sql: str | None) -> SqlError:
        if isinstance(error, apsw.InterruptError):
            if self._capture.overflowing and self._capture.poison is not None:
                return self._capture.poison
            return self.limit.stop.reason or SqlError("57014", "canceling statement due to user request")
        if isinstance(error, apsw.FullError) and self._capture.used_up():
            return SqlError("2200H", f"a serial or identity column has reached its maximum value, {2**63 - 1}")
        if is_local_fault(self._connection, error):
            self._local_fault = error
        return with_violation(from_sqlite(error, sql), self._connection, sql or "")

    def _read_failure(self, error: Exception, sql: str | None) -> SqlError:
        failure = self._failure(error, sql)
        if not self._connection.in_transaction:
            self._lose(failure)
        return failure

    def _undo_statement(self, before: RollbackPoint, failure: SqlError) -> None:
        with self.limit.paused():
            if not self._connection.in_transaction:
                self._lose(failure)
            self._changes.undo()
            self._undo(before)

    def _undo(self, point: RollbackPoint) -> None:
        """SQLite has rolled back to a point: follow it."""
        self._capture.cut(point.changes)
        self._access.undone()
        if self._schema.undo(point) or full_image_tables(self._connection) != self._capture.full:
            self._changes.reload_schema()

    def _lose(self, failure: SqlError) -> None:
        self.rollback()
        raise TransactionLost(failure) from failure

    # From statements to records.

    def finish(self, results: Sequence[StatementResult], request_id: str) -> PendingBatch:
        """End an interactive transaction: what to append before `commit`.

        Raises:
            SqlError: 23503 when a deferred foreign key is broken, 54000 when it is too large; the caller rolls back.
        """
        try:
            self._collect(0, results, request_id)
        except FAULTS as error:
            raise self._failure(error, None) from error
        return self._pending([])

    def run_batch(self, requests: Sequence[AutocommitRequest]) -> PendingBatch:
        """Run requests, each a transaction of its own, inside one SQLite transaction, which is left open; see `BatchRun`."""
        run = BatchRun(requests)
        self.begin()
        run.run_all(self)
        return self.end_batch(run)

    def begin_again(self, loss: TransactionLost) -> None:
        """SQLite has ended the transaction, and with it what the batch has run so far: begin again.

        Raises:
            EnvironmentFault: batches that are at the log were undone as well.
        """
        if self._sequence.sent_position != self._sequence.position:
            raise EnvironmentFault(f"changes that are at the log were undone: {loss.error.message}") from loss
        for number in self._builder.numbers:
            self._ids.finish(number, committed=False)
        self.begin()

    def end_batch(self, run: BatchRun) -> PendingBatch:
        """All requests have run: what to append before `commit`."""
        return self._pending(run.answers)

    def _pending(self, answers: Sequence[AutocommitResult]) -> PendingBatch:
        batch = self._builder
        return PendingBatch(answers, batch.preamble(), batch.records, batch.numbers, batch.requests, batch.notifications, batch.parts)

    def run_request(self, request: AutocommitRequest) -> AutocommitResult:
        """Run one request. Raises TransactionLost: SQLite has ended the whole transaction."""
        if request.stop.reason is not None:
            return AutocommitResult(error=request.stop.reason)
        if self._builder.is_full:
            return AutocommitResult()
        known = self._known_request(request) if request.request_id else None
        if known is not None:
            return known
        if request.schema_version not in (None, self._schema.current.number):
            return AutocommitResult(error=SchemaMoved())
        if request.access is not None and request.access is not self._access.current:
            return AutocommitResult(error=SchemaMoved())
        self.context.number = None
        prepared = request.prepared
        capture = self._capture
        capture.prepare(prepared.sql)
        self._changes.save()
        capture.begin_next()
        before = self._schema.point(capture.mark())
        self.limit.start(request.stop)
        try:
            outcome = self._changes.run(prepared, request.parameters, request.role)
            if request.check_rows is not None:
                request.check_rows(outcome.rows)
            results = (StatementResult(outcome.rows_affected, tuple(outcome.rows)),) if request.request_id else ()
            fits = self._collect(before.changes, results, request.request_id)
        except FAULTS as error:
            failure = self._failure(error, prepared.sql)
            self.limit.clear()
            self._undo_request(before, failure)
            return AutocommitResult(error=failure)
        self.limit.clear()
        if not fits:
            self._undo_request(before)
            return AutocommitResult()
        self._changes.keep()
        number, self.context.number = self.context.number, None
        return AutocommitResult(outcome, number=number)

    def _known_request(self, request: AutocommitRequest) -> AutocommitResult | None:
        """The answer to a request that has run before, or that must not run; None when it may."""
        if self._builder.has_request(request.request_id):
            return AutocommitResult()  # It runs in this batch already, so the next batch finds its result.
        try:
            stored = self._requests.find(request.request_id)
            if stored is not None:
                result = repeated_result(stored.results, 0)
                return AutocommitResult(StatementOutcome(list(result.rows), result.rows_affected))
            self._requests.check(request.request_id, self._sequence.time_ms, waiting=len(self._builder.requests))
        except FAULTS as error:
            return AutocommitResult(error=self._failure(error, None))
        return None

    def _undo_request(self, before: RollbackPoint, failure: SqlError | None = None) -> None:
        if not self._connection.in_transaction:
            self._lose(failure or SqlError("XX000", "the transaction ended unexpectedly"))
        self._changes.undo()
        self._abort_number()
        self._undo(before)

    def _abort_number(self) -> None:
        if self.context.number is not None:
            self._ids.finish(self.context.number, committed=False)
            self.context.number = None

    def _collect(self, mark: int, results: Sequence[StatementResult], request_id: str) -> bool:
        """Make the changes captured since `mark` one more record; False when it belongs to the next batch.

        Raises:
            SqlError: 23503 when a deferred foreign key is broken, 54000 when the transaction fits no batch.
        """
        check_references(self._connection)
        self._capture.flush_virtual_tables()
        if self._capture.poison is not None:
            raise self._capture.poison
        counters = self._capture.end_transaction(mark, self._counters.current)
        change = None if request_id else self._capture.only_row(mark)
        if change is not None:
            fit = self._builder.add_row(self.context.require_number(), change)
        else:
            operations, spooled = self._capture.operations(mark), self._capture.spooled
            if not operations and not request_id and not spooled.pieces:
                return True
            stored = self._requests.storable(results) if request_id else ()
            transaction = Transaction(self.context.require_number(), operations, request_id, stored)
            fit = self._builder.add_encoded(transaction, spooled) if spooled.pieces else self._builder.add(transaction)
            if spooled.pieces and fit in (BatchFit.ADDED, BatchFit.IN_PARTS):
                self._builder.notifications += dict.fromkeys([*spooled.notifications(), *notifications_of(operations)])
            if fit is BatchFit.IN_PARTS:
                if self._sequence.sent_position != self._sequence.position:
                    return False  # Other batches are at the log: it begins behind them.
                self._stage(transaction)
        if fit is BatchFit.TOO_LARGE:
            raise SqlError(
                "54000",
                f"the transaction's changes take {self._builder.last_record_bytes} bytes; a transaction may have {MAX_TRANSACTION_BYTES}",
                hint=SMALLER,
            )
        self._counters.current = counters if fit is not BatchFit.NEXT_BATCH else self._counters.current
        return fit is not BatchFit.NEXT_BATCH

    def _stage(self, transaction: Transaction) -> None:
        """Make the parts of the transaction, with those of its changes that are not spooled."""
        builder, spooled, schema = self._builder, self._capture.spooled, self._schema
        last = encode_operations(transaction.operations, builder.dictionary)
        versions = schema.committed, schema.current
        builder.parts = StagedParts(transaction, spooled, last, builder.dictionary.shapes, versions, self._sequence.header_of_part)
        builder.numbers.append(transaction.number)
        if transaction.request_id:
            builder.requests.append((transaction.request_id, transaction.number, encode_results(transaction.results)))

    def _header(self, tables: tuple[TableShape, ...]) -> BatchHeader:
        return self._sequence.header(self._schema, tables)
