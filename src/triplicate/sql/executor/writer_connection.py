"""The leader's writing connection: statements run inside one open SQLite transaction and become records of the log.

Everything here blocks and runs on the database's writer thread. The caller appends what `run_batch` or `finish` returns to the log
and then calls `commit` with the offset reached, or `rollback`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakSet

import apsw

from triplicate.errors import EnvironmentFault, SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import first_words, sqlite_tokens
from triplicate.sql.core.records import (
    BatchHeader,
    SchemaChange,
    SettingChange,
    StatementResult,
    TableDictionary,
    Transaction,
    encode_header,
    encode_results,
    encode_transaction,
)
from triplicate.sql.executor.authorizer import Authorizer, change_images, check_width
from triplicate.sql.executor.change_capture import SMALLER, ChangeCapture
from triplicate.sql.executor.definitions import broken_by_rows, run_definition
from triplicate.sql.executor.threads import StopFlag
from triplicate.sql.executor.transaction_functions import TransactionContext, TransactionIds
from triplicate.sql.interface import Prepared, Row, SchemaMoved, StatementKind
from triplicate.sql.storage.local_copies import is_damage
from triplicate.sql.storage.sqlite_file import ConnectionSetup, full_image_tables, open_writer, read_state, record_batch, set_change_images
from triplicate.sql.storage.sqlite_schema import check_references, schema_digest, stored_text, table_names, unfit_reason
from triplicate.sql.storage.sqlstates import from_sqlite
from triplicate.sql.storage.transaction_history import (
    CommitRecord,
    HistoryTotals,
    RequestLimits,
    StoredResult,
    check_request,
    keepable,
    read_history,
    repeated,
    stored_result,
)

MAX_ENTRY_BYTES = 4 * 1024 * 1024
AIM_ENTRY_BYTES = 1024 * 1024
_ENTRY_MARGIN = 64 * 1024
"""What the log adds around records and preamble, generously."""
_PROGRESS_STEPS = 5000


class TransactionLost(Exception):
    """SQLite ended the whole transaction: ON CONFLICT ROLLBACK, RAISE(ROLLBACK), an interrupt, a full disk. `error` is for the client."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error.message)
        self.error = error


class LateChanges(Exception):
    """Rows were changed while the transaction committed, so this copy holds what the log does not."""


@dataclass(slots=True)
class StatementOutcome:
    """What one statement did."""

    rows: list[Row]
    rows_affected: int


@dataclass(slots=True)
class AutocommitRequest:
    """One statement that is a transaction of its own."""

    prepared: Prepared
    parameters: Sequence[Value]
    request_id: str = ""
    stop: StopFlag = field(default_factory=StopFlag)
    schema_version: int | None = None  # That it was prepared for; None where any will do.


@dataclass(slots=True)
class AutocommitResult:
    """What became of a request. With neither outcome nor error it did not fit the batch and must be run again in the next."""

    outcome: StatementOutcome | None = None
    error: SqlError | None = None
    number: int | None = None


@dataclass(slots=True)
class PendingBatch:
    """A batch that ran and waits for the log's acknowledgement."""

    answers: list[AutocommitResult]
    preamble: bytes = b""
    records: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    requests: list[tuple[str, int, bytes]] = field(default_factory=list)
    size: int = 0
    """Bytes of the records."""


@dataclass(slots=True)
class _Savepoint:
    name: str
    mark: int
    version: int
    digest: bytes


class WriterConnection:
    """One SQLite transaction at a time on the leader's connection."""

    def __init__(
        self,
        path: str,
        numbers: TransactionIds,
        setup: ConnectionSetup | None = None,
        *,
        now: Callable[[], float] = lambda: 0.0,
        limit_s: float = float("inf"),
        wall_us: Callable[[], int] = lambda: 0,
        request_limits: RequestLimits | None = None,
    ) -> None:
        """
        Args:
            now: a clock in seconds that never goes back. limit_s: how long a statement of a batch may run, as all others wait for it.
            wall_us: µs since the epoch; the log's own time follows it, without ever going back.
        """
        self.context = TransactionContext()
        self.context.numbers = numbers
        self._numbers = numbers
        self._connection = connection = open_writer(path, setup)
        self.context.register(connection)
        self.gate = Authorizer(connection)
        self._capture = ChangeCapture(connection, MAX_ENTRY_BYTES - _ENTRY_MARGIN)
        self._capture.schema_changed(full_image_tables(connection))
        state = read_state(connection)
        self._database = state.database
        self.position = state.position
        self._batch = state.batch if state.epoch == numbers.epoch else 0
        self._time_ms = read_history(connection).time_ms
        self._kept: HistoryTotals | None = None
        self._wall_us = wall_us
        self._request_limits = request_limits or RequestLimits()
        self._version = self._committed_version = state.schema_version
        self._digest = self._committed_digest = schema_digest(connection)
        self._capture.prepare()
        self._counters = self._committed_counters = self._capture.counters()
        self._savepoints: list[_Savepoint] = []
        self._reading: WeakSet[apsw.Cursor] = WeakSet()
        """Reading statements of the transaction that somebody may still fetch from."""
        self._dictionary = TableDictionary()
        self.stop = StopFlag()
        self._now, self._limit_s, self._deadline = now, limit_s, float("inf")
        self._local_fault: apsw.Error | None = None
        """What a statement failed with that no client is to blame for: a full disk, a failed write, a damaged file."""
        connection.set_progress_handler(self._must_stop, _PROGRESS_STEPS)

    def close(self) -> None:
        """Roll back and close; idempotent."""
        self._connection.preupdate_hook(None)
        self._connection.close(True)

    def stored_result(self, request_id: str) -> StoredResult | None:
        """What is kept under a request id, or None when it may run; raises as `check_request`."""
        stored = stored_result(self._connection, request_id)
        if stored is None:
            check_request(self._connection, request_id, self._kept_now(), self._time_ms, self._request_limits)
        return stored

    def look_up(self, question: Callable[[apsw.Connection, str], Any], table: str) -> Any:
        """What `schema.columns_of` or `schema.key_of` answers."""
        return question(self._connection, table)

    # The life of the one transaction.

    def begin(self, number: int | None = None) -> int:
        """Open the transaction, whose id's number may have been asked for before; the position it stands on.

        Raises:
            EnvironmentFault: a statement before has met a fault of the local disk or file, so another node should lead.
        """
        if self._local_fault is not None:
            raise EnvironmentFault(f"the local copy cannot be written: {self._local_fault}") from self._local_fault
        self._connection.execute("begin immediate")
        self._capture.cut(0)
        self._capture.begin_transaction()
        self._savepoints.clear()
        self._dictionary = TableDictionary()
        self._kept = None
        # Never 0, which stands for no time.
        self._time_ms = max(self._time_ms, self._wall_us() // 1000, 1)
        self.context.number = number
        return self.position

    def rollback(self) -> None:
        """Undo the transaction; nothing happens when there is none."""
        self.stop, self._deadline = StopFlag(), float("inf")
        self._end_reading()
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._savepoints.clear()
        self._counters = self._committed_counters
        self._drop_number()
        self._undo(0, self._committed_version, self._committed_digest)

    def commit(self, pending: PendingBatch, end: int) -> None:
        """Make the batch visible: the log has acknowledged it and now ends at offset `end`.

        Raises:
            LateChanges: this copy must not be used any more.
        """
        facts = CommitRecord(
            self._numbers.epoch,
            self._batch + 1,
            end - len(pending.records),
            end,
            self._version,
            pending.numbers,
            pending.requests,
            self._time_ms,
            self._forget_before_ms(),
        )
        self._capture.cut(0)
        self._end_reading()
        if pending.records:
            record_batch(self._connection, facts)
        self._connection.execute("commit")
        if self._capture.events or self._capture.unknown:
            raise LateChanges("rows were changed while the transaction committed")
        if pending.records:
            self._batch += 1
            self.position = end
        self._committed_version, self._committed_digest = self._version, self._digest
        self._committed_counters = self._counters
        if self.context.number is not None:
            self._numbers.finish(self.context.number, committed=True)
            self.context.number = None

    def _end_reading(self) -> None:
        # SQLite would leave them open, and what they read would hold the write-ahead log back until their client comes again.
        for cursor in list(self._reading):
            cursor.close(True)

    # Savepoints of the user.

    @property
    def schema_version(self) -> int:
        """Of the last commit."""
        return self._committed_version

    @property
    def current_schema_version(self) -> int:
        """Of the open transaction. Only its own session may ask, and only while no statement of it runs."""
        return self._version

    def savepoint(self, name: str) -> None:
        self._capture.prepare()
        self._connection.execute(f'savepoint "user {len(self._savepoints)}"')
        self._savepoints.append(_Savepoint(name, self._capture.mark(), self._version, self._digest))

    def release(self, name: str) -> None:
        index = self._find_savepoint(name)
        self._connection.execute(f'release "user {index}"')
        del self._savepoints[index:]

    def rollback_to(self, name: str) -> None:
        index = self._find_savepoint(name)
        self._connection.execute(f'rollback to "user {index}"')
        kept = self._savepoints[index]
        del self._savepoints[index + 1 :]
        self._undo(kept.mark, kept.version, kept.digest)

    def _find_savepoint(self, name: str) -> int:
        for index in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[index].name == name:
                return index
        raise SqlError("3B001", f'savepoint "{name}" does not exist')

    # Statements.

    def run(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        """Run one changing statement. On an error nothing of it is kept.

        Raises:
            SqlError: it failed. TransactionLost: and took the whole transaction with it.
        """
        self._capture.prepare(prepared.sql)
        self._connection.execute("savepoint triplicate_statement")
        mark, version, digest = self._capture.mark(), self._version, self._digest
        try:
            outcome = (self._run_schema if prepared.kind is StatementKind.SCHEMA else self._run_change)(prepared, parameters)
            self._capture.end_statement()
            self._refuse_poisoned()
            self._connection.execute("release triplicate_statement")
        except (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError) as error:
            failure = self._failure(error, prepared.sql)
            self._undo_statement(mark, version, digest, failure)
            raise failure from error
        return outcome

    def read(self, prepared: Prepared, parameters: Sequence[Value]) -> apsw.Cursor:
        """Start a reading statement inside the transaction; the caller fetches from the cursor and closes it."""
        cursor = self._connection.cursor()
        try:
            with self.gate.running(StatementKind.READ, explain=prepared.tag == "EXPLAIN"):
                cursor.execute(prepared.sql, tuple(parameters))
                check_width(cursor, prepared)
        except (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError) as error:
            cursor.close(True)
            failure = self._failure(error, prepared.sql)
            if not self._connection.in_transaction:
                self._lose(failure)
            raise failure from error
        self._reading.add(cursor)
        return cursor

    def fetch(self, cursor: apsw.Cursor, max_rows: int) -> list[Row]:
        """The next rows of a reading statement."""
        rows: list[Row] = []
        try:
            with self.gate.running(StatementKind.READ):
                for row in cursor:
                    rows.append(row)
                    if len(rows) == max_rows:
                        break
        except (apsw.Error, SqlError, UnicodeError) as error:
            failure = self._failure(error, None)
            if not self._connection.in_transaction:
                self._lose(failure)
            raise failure from error
        return rows

    def _run_change(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        with self.gate.running(StatementKind.WRITE):
            cursor = self._connection.execute(prepared.sql, tuple(parameters))
            rows = cursor.fetchall()
        if self._capture.unknown is not None:
            raise SqlError("XX000", f"a change to the unknown table {self._capture.unknown!r}")
        return StatementOutcome(rows, self._connection.changes())

    def _run_schema(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        if (images := change_images(prepared.sql)) is not None:
            self._change_images(*images)
        elif first_words(sqlite_tokens(prepared.sql), 1) == ["PRAGMA"]:
            self._set_pragma(prepared)
        else:
            run_definition(self._connection, prepared.sql, self._change_schema, partial(self._fill_table, prepared, parameters))
        return StatementOutcome([], 0)

    def _fill_table(self, prepared: Prepared, parameters: Sequence[Value], text: str) -> None:
        self._run_change(replace(prepared, sql=text), parameters)

    def _change_images(self, table: str, value: str) -> None:
        for found in [name for name in table_names(self._connection) if name.lower() == table.lower()]:
            self._record_images(found, value)
            return self._schema_changed()
        raise SqlError("42P01", f"no such table: {table}")

    def _record_images(self, table: str, value: str) -> None:
        set_change_images(self._connection, table, value)
        self._capture.add(SettingChange(f"change_images:{table}", value))

    def _set_pragma(self, prepared: Prepared) -> None:
        with self.gate.running(StatementKind.SCHEMA):
            self._connection.execute(prepared.sql).fetchall()
        for name in ("user_version", "application_id"):
            if name in prepared.sql.lower():
                self._capture.add(SettingChange(name, self._connection.execute(f"pragma {name}").fetchall()[0][0]))

    def _change_schema(self, text: str) -> None:
        words, before, mark = first_words(sqlite_tokens(text)), table_names(self._connection), self._capture.mark()
        try:
            with self.gate.running(StatementKind.SCHEMA):
                self._connection.execute(text).fetchall()
        except apsw.ConstraintError as error:
            raise broken_by_rows(text) or error from error
        after = table_names(self._connection)
        if words[0] == "ALTER" and len(after) < len(before):  # The gate is not told the new name; tables of ours are not among these.
            raise SqlError("42501", "names that begin with triplicate_ belong to Triplicate")
        # What a schema change did to rows happens again when its text is applied, except that a follower, whose foreign keys are
        # off, does not repeat what DROP TABLE did to the rows of other tables.
        self._capture.keep_only(mark, before & after if words[:2] == ["DROP", "TABLE"] else frozenset())
        self._capture.end_statement()
        digest = schema_digest(self._connection)
        if digest == self._digest and words[0] not in ("ANALYZE", "REINDEX"):
            return
        self._schema_changed()
        self._refuse_unfit()
        made = after - before
        stored = stored_text(self._connection, made) if words[0] == "CREATE" and words[1] != "VIRTUAL" and len(made) == 1 else None
        self._version, self._digest = self._version + 1, digest
        self._capture.add(SchemaChange(stored or text, digest))
        if stored is not None:
            self._capture.scan_table(next(iter(made)))
        self._move_images(before, after)

    def _move_images(self, before: frozenset[str], after: frozenset[str]) -> None:
        """A table keeps its change images under a new name and loses them when it is dropped."""
        for name in sorted(full_image_tables(self._connection) - after):
            self._record_images(name, "keys")
            made = after - before
            if len(made) == 1 and len(before - after) == 1:
                self._record_images(next(iter(made)), "full")
            self._schema_changed()

    def _refuse_unfit(self) -> None:
        for table in self._capture.tables():
            reason = unfit_reason(table)
            if reason is not None:
                raise SqlError("0A000", reason)

    def _refuse_poisoned(self) -> None:
        if self._capture.poison is not None:
            raise self._capture.poison

    def _schema_changed(self) -> None:
        self._capture.schema_changed(full_image_tables(self._connection))
        self._capture.prepare()

    # Failures.

    def _must_stop(self) -> bool:
        if self._now() > self._deadline and self.stop.reason is None:
            self.stop.reason = SqlError(
                "57014", f"the statement held the writer for {self._limit_s:g} s", hint="Change fewer rows at a time."
            )
        return self.stop.reason is not None or self._capture.overflowing

    def _failure(self, error: Exception, sql: str | None) -> SqlError:
        if isinstance(error, apsw.InterruptError):
            if self._capture.overflowing and self._capture.poison is not None:
                return self._capture.poison
            return self.stop.reason or SqlError("57014", "canceling statement due to user request")
        if isinstance(error, apsw.FullError) and self._capture.used_up():
            return SqlError("2200H", f"a column that numbers itself has reached its last number, {2**63 - 1}")
        if isinstance(error, apsw.FullError | apsw.IOError) or (isinstance(error, apsw.Error) and is_damage(error)):
            self._local_fault = error
        return from_sqlite(error, sql)

    def _undo_statement(self, mark: int, version: int, digest: bytes, failure: SqlError) -> None:
        if not self._connection.in_transaction:
            self._lose(failure)
        self._connection.execute("rollback to triplicate_statement; release triplicate_statement")
        self._undo(mark, version, digest)

    def _undo(self, mark: int, version: int, digest: bytes) -> None:
        self._capture.cut(mark)
        changed = self._version != version or self._digest != digest
        self._version, self._digest = version, digest
        if changed or full_image_tables(self._connection) != self._capture.full:
            self._schema_changed()

    def _lose(self, failure: SqlError) -> None:
        self.rollback()
        raise TransactionLost(failure) from failure

    # From statements to records.

    def finish(self, results: Sequence[StatementResult], request_id: str) -> PendingBatch:
        """End an interactive transaction: what to append before `commit`.

        Raises:
            SqlError: 23503 when a deferred foreign key is broken, 54000 when it is too large; the caller rolls back.
        """
        pending = PendingBatch([])
        self._collect(pending, 0, results, request_id)
        pending.preamble = self._header()
        return pending

    def run_batch(self, requests: Sequence[AutocommitRequest]) -> PendingBatch:
        """Run requests, each a transaction of its own, inside one SQLite transaction, which is left open.

        A request that ends the whole SQLite transaction fails alone: the others run again without it.
        """
        lost: dict[int, SqlError] = {}
        while True:
            self.begin()
            pending = PendingBatch([])
            for index, request in enumerate(requests):
                if index in lost:
                    pending.answers.append(AutocommitResult(error=lost[index]))
                    continue
                try:
                    pending.answers.append(self._run_request(request, pending))
                except TransactionLost as loss:
                    lost[index] = loss.error
                    for number in pending.numbers:
                        self._numbers.finish(number, committed=False)
                    break
            else:
                self.stop, self._deadline = StopFlag(), float("inf")
                pending.preamble = self._header()
                return pending

    def _run_request(self, request: AutocommitRequest, pending: PendingBatch) -> AutocommitResult:
        if request.stop.reason is not None:
            return AutocommitResult(error=request.stop.reason)
        if pending.size > AIM_ENTRY_BYTES:
            return AutocommitResult()
        known = self._known_request(request, pending) if request.request_id else None
        if known is not None:
            return known
        if request.schema_version not in (None, self._version):
            return AutocommitResult(error=SchemaMoved())
        self.stop, self.context.number = request.stop, None
        self._deadline = self._now() + self._limit_s
        self._connection.execute("savepoint triplicate_request")
        self._capture.begin_transaction()
        mark, version, digest = self._capture.mark(), self._version, self._digest
        try:
            outcome = self.run(request.prepared, request.parameters)
            result = StatementResult(outcome.rows_affected, tuple(outcome.rows))
            fits = self._collect(pending, mark, (result,), request.request_id)
        except SqlError as error:
            self._undo_request(mark, version, digest)
            return AutocommitResult(error=error)
        if not fits:
            self._undo_request(mark, version, digest)
            return AutocommitResult()
        self._connection.execute("release triplicate_request")
        number, self.context.number = self.context.number, None
        return AutocommitResult(outcome, number=number)

    def _known_request(self, request: AutocommitRequest, pending: PendingBatch) -> AutocommitResult | None:
        """The answer to a request that has run before, or that must not run; None when it may."""
        if any(request.request_id == other for other, _, _ in pending.requests):
            return AutocommitResult()  # Its first sending is in this batch: the next finds the result.
        try:
            stored = stored_result(self._connection, request.request_id)
            if stored is not None:
                return AutocommitResult(StatementOutcome(*repeated(stored.results, 0)))
            kept, waiting = self._kept_now(), len(pending.requests)
            check_request(self._connection, request.request_id, kept, self._time_ms, self._request_limits, waiting)
        except SqlError as error:
            return AutocommitResult(error=error)
        return None

    def _undo_request(self, mark: int, version: int, digest: bytes) -> None:
        if not self._connection.in_transaction:
            self._lose(SqlError("XX000", "the transaction ended unexpectedly"))
        self._connection.execute("rollback to triplicate_request; release triplicate_request")
        self._drop_number()
        self._undo(mark, version, digest)

    def _drop_number(self) -> None:
        if self.context.number is not None:
            self._numbers.finish(self.context.number, committed=False)
            self.context.number = None

    def _collect(self, pending: PendingBatch, mark: int, results: Sequence[StatementResult], request_id: str) -> bool:
        """Encode what was captured since `mark` as one more record; False when it belongs into the next batch."""
        check_references(self._connection)
        self._capture.flush_virtual_tables()
        self._refuse_poisoned()
        counters = self._capture.end_transaction(mark, self._counters)
        operations = self._capture.operations(mark)
        if not operations and not request_id:
            return True
        kept, tables = self._keepable(results) if request_id else (), len(self._dictionary.shapes)
        number = self.context.take_number()
        record = encode_transaction(Transaction(number, operations, request_id, kept), self._dictionary)
        # Few entries come near the limit, so the header, which names every table, is measured only then.
        size = len(record) + pending.size + _ENTRY_MARGIN
        if size > AIM_ENTRY_BYTES and size + len(self._header()) > MAX_ENTRY_BYTES:
            self._dictionary.truncate(tables)
            if pending.records:
                return False
            raise SqlError(
                "54000",
                f"the transaction's changes take {len(record)} bytes; a transaction may have {MAX_ENTRY_BYTES - _ENTRY_MARGIN}",
                hint=SMALLER,
            )
        self._counters = counters
        pending.records.append(record)
        pending.size += len(record)
        pending.numbers.append(number)
        if request_id:
            pending.requests.append((request_id, number, encode_results(kept)))
        return True

    def _header(self) -> bytes:
        schema = self._committed_version, self._version, self._committed_digest, self._digest
        place, times = (self._database, self._numbers.epoch, self._batch + 1), (self._time_ms, self._forget_before_ms())
        return encode_header(BatchHeader(place[0], place[1], place[2], *schema, tuple(self._dictionary.shapes), *times))

    def _forget_before_ms(self) -> int:
        return max(0, self._time_ms - self._request_limits.keep_ms)

    def _keepable(self, results: Sequence[StatementResult]) -> tuple[StatementResult, ...]:
        return keepable(results, rows=self._kept_now().bytes < self._request_limits.bytes)

    def _kept_now(self) -> HistoryTotals:
        """How much is kept, as the open transaction found it."""
        self._kept = self._kept or read_history(self._connection)
        return self._kept
