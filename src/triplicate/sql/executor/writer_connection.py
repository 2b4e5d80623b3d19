"""The leader's writing connection: statements run inside one open SQLite transaction and become records of the log.

Everything here blocks and runs on the database's writer thread. The caller appends what `run_batch` or `finish` returns to the log. It
then calls `commit` with the offset reached, or `rollback`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

import apsw

from triplicate.errors import EnvironmentFault, SqlError
from triplicate.sql.core.batch_builder import MAX_TRANSACTION_BYTES, BatchBuilder, BatchFit
from triplicate.sql.core.batch_sequence import BatchSequence
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import CheckRows, Prepared, Row, SchemaMoved, StatementKind
from triplicate.sql.core.records import BatchHeader, StatementResult, Transaction
from triplicate.sql.core.request_results import repeated_result
from triplicate.sql.core.schema_versions import RollbackPoint, SchemaVersion, SchemaVersions
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.executor.authorizer import Authorizer, check_width
from triplicate.sql.executor.change_capture import SMALLER, ChangeCapture
from triplicate.sql.executor.interrupts import StatementLimit, StopFlag, TransactionLost
from triplicate.sql.executor.request_checks import RequestChecks
from triplicate.sql.executor.schema_statements import SchemaStatements
from triplicate.sql.executor.transaction_functions import TransactionContext, TransactionIds
from triplicate.sql.storage.local_copies import is_damage
from triplicate.sql.storage.sqlite_file import ConnectionSetup, full_image_tables, open_writer, read_state, record_batch
from triplicate.sql.storage.sqlite_schema import check_references, schema_digest
from triplicate.sql.storage.sqlstates import from_sqlite
from triplicate.sql.storage.transaction_history import CommitRecord, RequestLimits, StoredResult, read_history

_PROGRESS_STEPS = 5000
_FAULTS = (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError)
"""The errors of a client's statement."""


class LateChanges(Exception):
    """Rows were changed while the transaction committed, so this copy holds what the log does not."""


@dataclass(slots=True)
class StatementOutcome:
    """The rows that a statement returned and the number of rows it changed."""

    rows: list[Row]
    rows_affected: int


@dataclass(slots=True)
class AutocommitRequest:
    """One statement that is a transaction of its own."""

    prepared: Prepared
    parameters: Sequence[Value]
    request_id: str = ""
    stop: StopFlag = field(default_factory=StopFlag)
    schema_version: int | None = None
    """The schema version that it was prepared for; None where it may run in any."""
    check_rows: CheckRows | None = None


@dataclass(slots=True)
class AutocommitResult:
    """The result of a request. With neither outcome nor error it did not fit the batch and must be run again in the next."""

    outcome: StatementOutcome | None = None
    error: SqlError | None = None
    number: int | None = None
    """Its transaction number, None where it changed nothing."""


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A batch that ran and waits for the log's acknowledgement."""

    answers: Sequence[AutocommitResult]
    preamble: bytes = b""
    records: Sequence[bytes] = ()
    numbers: Sequence[int] = ()
    """Transaction numbers, one for each record."""
    requests: Sequence[tuple[str, int, bytes]] = ()
    """Request id, transaction number, encoded results."""


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
    ) -> None:
        """
        Args:
            now: a clock in seconds that never goes back.
            limit_s: the longest time, in seconds, that a statement of a batch may run, as all others wait for it.
            wall_us: µs since the epoch; the log's own time follows it, without ever going back.
        """
        limits = request_limits or RequestLimits()
        self.context = TransactionContext()
        self.context.ids = ids
        self._ids = ids
        self._connection = connection = open_writer(path, setup)
        self.context.register(connection)
        self.authorizer = Authorizer(connection)
        self._capture = ChangeCapture(connection, MAX_TRANSACTION_BYTES)
        state, schema = read_state(connection), schema_digest(connection)
        self._schema = SchemaVersions(SchemaVersion(state.schema_version, schema))
        self._schema_statements = SchemaStatements(connection, self.authorizer, self._capture, self._schema)
        self._schema_statements.reload()
        batch = state.batch if state.epoch == ids.epoch else 0
        time_ms = read_history(connection).time_ms
        self._sequence = BatchSequence(state.database, ids.epoch, batch, state.position, time_ms, limits.keep_ms)
        self._builder = BatchBuilder(self._header)
        self._requests = RequestChecks(connection, limits)
        self._wall_us = wall_us
        self._counters = self._committed_counters = self._capture.counters()
        self._open_results: WeakSet[apsw.Cursor] = WeakSet()
        """Cursors of the transaction's reading statements."""
        self.limit = StatementLimit(now, limit_s)
        self._local_fault: apsw.Error | None = None
        """The fault of the local disk or file that a statement has met."""
        connection.set_progress_handler(self._must_stop, _PROGRESS_STEPS)

    def close(self) -> None:
        """Roll back and close. Idempotent."""
        self._connection.preupdate_hook(None)
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
        self._connection.execute("begin immediate")
        self._capture.begin()
        self._schema.begin()
        self._builder = BatchBuilder(self._header)
        self._requests.begin()
        self._sequence.begin(self._wall_us() // 1000)
        self.context.number = number
        return self._sequence.position

    def rollback(self) -> None:
        """Undo the transaction; no effect when there is none."""
        self.limit.clear()
        self._close_results()
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._schema.begin()
        self._counters = self._committed_counters
        self._abort_number()
        self._undo(self._schema.committed_point())

    def commit(self, pending: PendingBatch, end: int) -> None:
        """Make the batch visible: the log has acknowledged it and now ends at offset `end`.

        Raises:
            LateChanges: this copy must not be used any more.
        """
        self._capture.begin()
        if self._open_results:
            self._close_results()
        if pending.records:
            record_batch(self._connection, self._commit_record(pending, end))
        self._connection.execute("commit")
        if self._capture.events or self._capture.unknown:
            raise LateChanges("rows were changed while the transaction committed")
        if pending.records:
            self._sequence.append(end)
        self._schema.commit()
        self._committed_counters = self._counters
        if self.context.number is not None:
            self._ids.finish(self.context.number, committed=True)
            self.context.number = None

    def _commit_record(self, pending: PendingBatch, end: int) -> CommitRecord:
        sequence = self._sequence
        return CommitRecord(
            self._ids.epoch,
            sequence.next_batch,
            end - len(pending.records),
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
        self._capture.prepare()
        self._connection.execute(f'savepoint "user {self._schema.depth}"')
        self._schema.save(name, self._capture.mark())

    def release(self, name: str) -> None:
        level = self._schema.level_of(name)
        self._connection.execute(f'release "user {level}"')
        self._schema.release(level)

    def rollback_to(self, name: str) -> None:
        level = self._schema.level_of(name)
        self._connection.execute(f'rollback to "user {level}"')
        self._undo(self._schema.back_to(level))

    # Statements.

    def run(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        """Run one changing statement. On an error all it did is undone.

        Raises:
            SqlError: it failed. TransactionLost: it failed, and SQLite ended the whole transaction.
        """
        self._capture.prepare(prepared.sql)
        self._connection.execute("savepoint triplicate_statement")
        before = self._schema.point(self._capture.mark())
        try:
            outcome = self._perform(prepared, parameters)
            self._connection.execute("release triplicate_statement")
        except _FAULTS as error:
            failure = self._failure(error, prepared.sql)
            self._undo_statement(before, failure)
            raise failure from error
        return outcome

    def _perform(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        """Run a changing statement and capture its changes. The caller undoes them on an error."""
        outcome = (self._run_schema if prepared.kind is StatementKind.SCHEMA else self._run_change)(prepared, parameters)
        self._capture.end_statement()
        if self._capture.poison is not None:
            raise self._capture.poison
        return outcome

    def read(self, prepared: Prepared, parameters: Sequence[Value]) -> apsw.Cursor:
        """Start a reading statement inside the transaction; the caller fetches from the cursor and closes it."""
        cursor = self._connection.cursor()
        try:
            with self.authorizer.running(StatementKind.READ, explain=prepared.tag == "EXPLAIN"):
                cursor.execute(prepared.sql, tuple(parameters))
                check_width(cursor, prepared)
        except _FAULTS as error:
            cursor.close(True)
            raise self._read_failure(error, prepared.sql) from error
        self._open_results.add(cursor)
        return cursor

    def fetch(self, cursor: apsw.Cursor, max_rows: int) -> list[Row]:
        """The next rows of a reading statement."""
        rows: list[Row] = []
        try:
            with self.authorizer.running(StatementKind.READ):
                for row in cursor:
                    rows.append(row)
                    if len(rows) == max_rows:
                        break
        except (apsw.Error, SqlError, UnicodeError) as error:
            raise self._read_failure(error, None) from error
        return rows

    def _run_change(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        authorizer = self.authorizer
        authorizer.begin(StatementKind.WRITE)
        try:
            rows = self._connection.execute(prepared.sql, tuple(parameters)).fetchall()
        except apsw.Error as error:
            if authorizer.refusal is None:
                raise
            raise authorizer.refusal from error
        finally:
            authorizer.end()
        if self._capture.unknown is not None:
            raise SqlError("XX000", f"a change to the unknown table {self._capture.unknown!r}")
        return StatementOutcome(rows, self._connection.changes())

    def _run_schema(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        def fill_table(text: str) -> None:
            self._run_change(replace(prepared, sql=text), parameters)

        self._schema_statements.run(prepared.sql, fill_table)
        return StatementOutcome([], 0)

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
        if isinstance(error, apsw.FullError | apsw.IOError) or (isinstance(error, apsw.Error) and is_damage(error)):
            self._local_fault = error
        return from_sqlite(error, sql)

    def _read_failure(self, error: Exception, sql: str | None) -> SqlError:
        failure = self._failure(error, sql)
        if not self._connection.in_transaction:
            self._lose(failure)
        return failure

    def _undo_statement(self, before: RollbackPoint, failure: SqlError) -> None:
        if not self._connection.in_transaction:
            self._lose(failure)
        self._connection.execute("rollback to triplicate_statement; release triplicate_statement")
        self._undo(before)

    def _undo(self, point: RollbackPoint) -> None:
        """SQLite has rolled back to a point: follow it."""
        self._capture.cut(point.changes)
        if self._schema.undo(point) or full_image_tables(self._connection) != self._capture.full:
            self._schema_statements.reload()

    def _lose(self, failure: SqlError) -> None:
        self.rollback()
        raise TransactionLost(failure) from failure

    # From statements to records.

    def finish(self, results: Sequence[StatementResult], request_id: str) -> PendingBatch:
        """End an interactive transaction: what to append before `commit`.

        Raises:
            SqlError: 23503 when a deferred foreign key is broken, 54000 when it is too large; the caller rolls back.
        """
        self._collect(0, results, request_id)
        return self._pending([])

    def run_batch(self, requests: Sequence[AutocommitRequest]) -> PendingBatch:
        """Run requests, each a transaction of its own, inside one SQLite transaction, which is left open.

        A request that ends the whole SQLite transaction fails alone: the others run again without it.
        """
        lost: dict[int, SqlError] = {}
        while True:
            self.begin()
            answers: list[AutocommitResult] = []
            for index, request in enumerate(requests):
                if index in lost:
                    answers.append(AutocommitResult(error=lost[index]))
                    continue
                try:
                    answers.append(self._run_request(request))
                except TransactionLost as loss:
                    lost[index] = loss.error
                    for number in self._builder.numbers:
                        self._ids.finish(number, committed=False)
                    break
            else:
                self.limit.clear()
                return self._pending(answers)

    def _pending(self, answers: Sequence[AutocommitResult]) -> PendingBatch:
        batch = self._builder
        return PendingBatch(answers, batch.preamble(), batch.records, batch.numbers, batch.requests)

    def _run_request(self, request: AutocommitRequest) -> AutocommitResult:
        if request.stop.reason is not None:
            return AutocommitResult(error=request.stop.reason)
        if self._builder.is_full:
            return AutocommitResult()
        known = self._known_request(request) if request.request_id else None
        if known is not None:
            return known
        if request.schema_version not in (None, self._schema.current.number):
            return AutocommitResult(error=SchemaMoved())
        self.context.number = None
        self.limit.start(request.stop)
        prepared = request.prepared
        self._capture.prepare(prepared.sql)
        self._connection.execute("savepoint triplicate_request")
        self._capture.begin_next()
        before = self._schema.point(self._capture.mark())
        try:
            try:
                outcome = self._perform(prepared, request.parameters)
            except _FAULTS as error:
                raise self._failure(error, prepared.sql) from error
            if request.check_rows is not None:
                request.check_rows(outcome.rows)
            results = (StatementResult(outcome.rows_affected, tuple(outcome.rows)),) if request.request_id else ()
            fits = self._collect(before.changes, results, request.request_id)
        except SqlError as failure:
            self._undo_request(before, failure)
            return AutocommitResult(error=failure)
        if not fits:
            self._undo_request(before)
            return AutocommitResult()
        self._connection.execute("release triplicate_request")
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
        except SqlError as error:
            return AutocommitResult(error=error)
        return None

    def _undo_request(self, before: RollbackPoint, failure: SqlError | None = None) -> None:
        if not self._connection.in_transaction:
            self._lose(failure or SqlError("XX000", "the transaction ended unexpectedly"))
        self._connection.execute("rollback to triplicate_request; release triplicate_request")
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
        counters = self._capture.end_transaction(mark, self._counters)
        operations = self._capture.operations(mark)
        if not operations and not request_id:
            return True
        storable = self._requests.storable(results) if request_id else ()
        fit = self._builder.add(Transaction(self.context.require_number(), operations, request_id, storable))
        if fit is BatchFit.NEXT_BATCH:
            return False
        if fit is BatchFit.TOO_LARGE:
            raise SqlError(
                "54000",
                f"the transaction's changes take {self._builder.last_record_bytes} bytes; a transaction may have {MAX_TRANSACTION_BYTES}",
                hint=SMALLER,
            )
        self._counters = counters
        return True

    def _header(self, tables: tuple[TableShape, ...]) -> BatchHeader:
        return self._sequence.header(self._schema, tables)
