"""Applying the log to a local file: each batch of transactions exactly once, with exactly the changes that the leader made.

Triggers, foreign keys and check constraints are off: their effects are in the log. Each row operation must change exactly one row and
each schema change must lead to the leader's schema; anything else means that this copy is wrong (`Diverged`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import apsw

from triplicate.errors import Diverged, EnvironmentFault
from triplicate.sql.core.added_references import added_reference
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.notifications import NOTIFY_KIND, Notification, notifications_of
from triplicate.sql.core.records import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    Transaction,
    decode_header,
    decode_joined,
    decode_transaction,
    part_of,
)
from triplicate.sql.core.statement_results import encode_results
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.storage.access_tables import KINDS as ACCESS_KINDS
from triplicate.sql.storage.access_tables import store_access_setting
from triplicate.sql.storage.sqlite_file import mark_epoch, read_state, record_batch, set_change_images
from triplicate.sql.storage.sqlite_schema import Table, load_tables, schema_digest
from triplicate.sql.storage.table_texts import add_reference
from triplicate.sql.storage.transaction_history import CommitRecord

LOCAL_FAULTS = (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.BusyError, apsw.LockedError, apsw.CantOpenError)
"""SQLite's errors for faults of the disk, the memory or another connection, not of the content."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """One log entry as it was read. A control entry has no records; it shows that its epoch has begun."""

    first_offset: int
    records: Sequence[bytes]
    preamble: bytes | None
    epoch: int


class _RowGroup:
    """Consecutive row operations of one statement, which run as one. They may be of several transactions and batches.

    Args:
        first_offset: of the batch that contains the first of them, for messages.
    """

    __slots__ = ("first_offset", "kind", "rows", "sql", "table")

    def __init__(self, sql: str, kind: RowKind, table: str, first_offset: int) -> None:
        self.sql = sql
        self.kind = kind
        self.table = table
        self.first_offset = first_offset
        self.rows: list[tuple[Value, ...]] = []
        """The statement's parameters for each row."""


class _OpenTransaction(NamedTuple):
    """A transaction in parts of which the last one is not applied yet. The SQLite transaction has nothing else."""

    number: int
    epoch: int
    parts: int
    """Those that are applied."""
    of: int
    end: int
    """The offset after them."""


class _TableStatements:
    """The SQL texts for one table of the dictionary."""

    __slots__ = ("delete", "insert", "move", "shape", "table", "update")

    def __init__(self, table: Table) -> None:
        self.table = table
        shape = self.shape = table.shape
        name = f"main.{quote(shape.name)}"
        columns = [quote(column) for column in shape.columns]
        assignments = ", ".join(f"{column} = ?" for column in columns)
        # ABORT overrides a conflict clause of the schema: the log contains a separate delete for each replaced row.
        if shape.without_rowid:
            self.insert = f"insert or abort into {name}({', '.join(columns)}) values({', '.join('?' * len(columns))})"
            self.move = ""
        else:
            names = [table.rowid_name, *columns]
            self.insert = f"insert or abort into {name}({', '.join(names)}) values({', '.join('?' * len(names))})"
            self.move = f"update or abort {name} set {assignments}, {table.rowid_name} = ? where {table.where}"
        self.update = f"update or abort {name} set {assignments} where {table.where}"
        self.delete = f"delete from {name} where {table.where}"


class Applier:
    """Applies batches on a connection made by `open_follower`.

    Call `begin`, then `apply` for each batch, then `commit` or `rollback`. The SQLite transaction that changes the rows also stores the
    position. A transaction in parts is committed with its last part, which a later call may bring. All methods block.

    Attributes:
        position: offset after the last log record applied whose transaction is complete.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._tables: dict[str, Table] | None = None
        self._statements: dict[TableShape, _TableStatements] = {}
        self._batch_statements: dict[int, _TableStatements] = {}
        """The statements by the identity of a shape in the dictionary of the batch that is being applied."""
        self._group: _RowGroup | None = None
        """Row operations that are not executed yet: the next ones may be of the same statement."""
        self.access_changes = 0
        """Changes of roles and rights so far, also of batches that were rolled back."""
        self._notifications: list[Notification] = []
        """Of the transactions applied since the last `taken_notifications`."""
        state = read_state(connection)
        self._database = state.database
        self.position = state.position
        self._epoch = state.epoch
        self._schema_version = self._committed_version = state.schema_version
        self._open: _OpenTransaction | None = None

    @property
    def schema_version(self) -> int:
        return self._committed_version

    @property
    def epoch(self) -> int:
        """Epoch of the last batch applied, or of a later leader that the copy has seen."""
        return self._epoch

    def begin(self) -> None:
        if self._open is None:
            self._connection.execute("begin immediate")

    def commit(self) -> None:
        """Commit everything since `begin`, but for a transaction that lacks parts.

        Raises:
            Diverged, EnvironmentFault: as `apply`, for rows of the last batches. EnvironmentFault: another connection holds a lock; a later
                attempt may succeed.
        """
        self._execute_group()
        if self._open is not None:
            return
        try:
            self._connection.execute("commit")
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"the local copy could not be committed: {error}") from error
        self._committed_version = self._schema_version

    def rollback(self) -> None:
        """Undo everything since `begin`, and a transaction that lacks parts."""
        self._group = self._open = None
        self._notifications = []
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        state = read_state(self._connection)
        self.position, self._epoch = state.position, state.epoch
        self._schema_version = self._committed_version = state.schema_version
        self._clear_statements()

    def apply(self, batch: LogBatch) -> None:
        """Apply one entry. An entry that is applied already is skipped. Its last row operations may be executed by a later call.

        Raises:
            Diverged: this copy differs from the leader's. EnvironmentFault: the disk is full or fails; a later attempt may succeed.
        """
        if self._is_applied(batch):
            return
        try:
            self._apply(batch)
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"the local copy could not be changed: {error}") from error
        except apsw.Error as error:
            raise Diverged(f"offset {batch.first_offset}: {type(error).__name__}: {error}") from error

    def _is_applied(self, batch: LogBatch) -> bool:
        end = batch.first_offset + len(batch.records)
        if batch.records and end <= self.position:
            return True
        if self._open is not None and batch.first_offset == self.position:
            self.rollback()  # The log is read again from the copy's position, after an interruption.
            self.begin()
        expected = self.position if self._open is None else self._open.end
        if batch.first_offset != expected:
            raise Diverged(f"the log continues at offset {batch.first_offset}, but this copy is at position {expected}")
        return False

    def _apply(self, batch: LogBatch) -> None:
        if not batch.records:
            if batch.epoch > self._epoch:
                mark_epoch(self._connection, batch.epoch)
                self._epoch = batch.epoch
            return
        if batch.preamble is None:
            raise Diverged(f"offset {batch.first_offset}: the entry has no batch header; this is not the log of a database")
        header = decode_header(batch.preamble)
        self._check(header, batch)
        self._batch_statements.clear()
        if self._open is not None or part_of(batch.records[0]).of > 1:
            self._apply_part(header, batch)
            return
        numbers: list[int] = []
        requests: list[tuple[str, int, bytes]] = []
        while len(numbers) < len(batch.records):
            joined = decode_joined(batch.records, len(numbers), header.tables)
            if joined is not None:
                self._apply_rows(joined.run, batch.first_offset)
                numbers += joined.numbers
                continue
            transaction = decode_transaction(batch.records[len(numbers)], header.tables)
            self._apply_transaction(transaction, batch.first_offset)
            numbers.append(transaction.number)
            if transaction.request_id:
                requests.append((transaction.request_id, transaction.number, encode_results(transaction.results)))
        if header.schema_version_after != self._schema_version:
            raise Diverged(
                f"the schema is at version {self._schema_version} after the batch, the leader's at {header.schema_version_after}"
            )
        self._record(header, batch.first_offset, batch.first_offset + len(batch.records), numbers, requests)

    def _apply_part(self, header: BatchHeader, batch: LogBatch) -> None:
        """Apply one part of a transaction, and record the transaction with the last one."""
        transaction = decode_transaction(batch.records[0], header.tables)
        part, before, end = transaction.part, self._open, batch.first_offset + 1
        expected = (transaction.number, header.epoch, 0, part.of) if before is None else before[:4]
        if len(batch.records) != 1 or (transaction.number, header.epoch, part.number - 1, part.of) != expected:
            raise Diverged(
                f"offset {batch.first_offset}: part {part.number} of {part.of} of transaction {transaction.number} is out of order"
            )
        if before is None:
            # The transactions before it are committed by themselves, so that it is undone alone where it is interrupted.
            self.commit()
            self.begin()
        self._apply_transaction(transaction, batch.first_offset)
        self._execute_group()
        if header.schema_version_after != self._schema_version:
            raise Diverged(
                f"the schema is at version {self._schema_version} after the batch, the leader's at {header.schema_version_after}"
            )
        if not part.is_last:
            self._open = _OpenTransaction(transaction.number, header.epoch, part.number, part.of, end)
            return
        self._open = None
        requests = [(transaction.request_id, transaction.number, encode_results(transaction.results))] if transaction.request_id else []
        self._record(header, batch.first_offset, end, [transaction.number], requests)

    def _record(
        self, header: BatchHeader, start: int, end: int, numbers: Sequence[int], requests: Sequence[tuple[str, int, bytes]]
    ) -> None:
        """Store what the batch that ends at an offset says of its transactions."""
        facts = header.epoch, header.batch, start, end, header.schema_version_after, numbers, requests
        record_batch(self._connection, CommitRecord(*facts, header.time_ms, header.forget_before_ms))
        self.position = end
        self._epoch = max(self._epoch, header.epoch)

    def _check(self, header: BatchHeader, batch: LogBatch) -> None:
        if header.database != self._database:
            raise Diverged(f"the batch at offset {batch.first_offset} belongs to another database ({header.database.hex()})")
        if header.epoch != batch.epoch:
            raise Diverged(f"the batch at offset {batch.first_offset} has epoch {header.epoch}, its log entry has epoch {batch.epoch}")
        if header.schema_version_before != self._schema_version:
            raise Diverged(
                f"the schema is at version {self._schema_version} before the batch, the leader's was at {header.schema_version_before}"
            )

    def _apply_transaction(self, transaction: Transaction, first_offset: int) -> None:
        self._notifications += notifications_of(transaction.operations)
        for operation in transaction.operations:
            if isinstance(operation, RowRun):
                self._apply_rows(operation, first_offset)
                continue
            self._execute_group()
            if isinstance(operation, SchemaChange):
                self._apply_schema_change(operation)
            else:
                self._apply_setting(operation)

    def taken_notifications(self) -> list[Notification]:
        """The notifications of the transactions that were committed since the last call."""
        taken, self._notifications = self._notifications, []
        return taken

    def _clear_statements(self) -> None:
        self._tables = None
        self._statements.clear()
        self._batch_statements.clear()

    def _statements_for(self, shape: TableShape) -> _TableStatements:
        statements = self._statements.get(shape)
        if statements is None:
            if self._tables is None:
                self._tables = load_tables(self._connection)
            table = self._tables.get(shape.name)
            if table is None:
                raise Diverged(f"table {shape.name!r} does not exist in this copy")
            if table.shape != shape:
                raise Diverged(f"table {shape.name!r} has another shape in this copy: {table.shape}, the leader's is {shape}")
            statements = self._statements[shape] = _TableStatements(table)
        return statements

    def _apply_rows(self, run: RowRun, first_offset: int) -> None:
        # The batch's dictionary keeps the shapes alive while it is applied, so their identity serves as a cheap key.
        statements = self._batch_statements.get(id(run.table))
        if statements is None:
            statements = self._batch_statements[id(run.table)] = self._statements_for(run.table)
        if run.kind is RowKind.INSERT:
            columns = run.new or ()
            sql, parts = statements.insert, columns if run.table.without_rowid else (run.rowids or (), *columns)
        else:
            address: Sequence[Sequence[Value]] = (run.keys or ()) if run.table.without_rowid else (run.rowids or (),)
            if run.kind is RowKind.DELETE:
                sql, parts = statements.delete, address
            elif run.new_rowids is not None:
                sql, parts = statements.move, (*(run.new or ()), run.new_rowids, *address)
            else:
                sql, parts = statements.update, (*(run.new or ()), *address)
        group = self._group
        if group is None or group.sql is not sql:
            self._execute_group()
            group = self._group = _RowGroup(sql, run.kind, run.table.name, first_offset)
        if run.count == 1:
            group.rows.append(tuple(chain.from_iterable(parts)))
        else:
            group.rows += zip(*parts, strict=True)

    def _execute_group(self) -> None:
        """Execute the row operations that wait.

        Each addresses a row by its rowid or its primary key, and so changes at most one row. The total therefore shows whether each has
        changed exactly one.

        Raises:
            Diverged: a row is missing, or is there already. EnvironmentFault: the disk is full or fails.
        """
        group, self._group = self._group, None
        if group is None:
            return
        count, before = len(group.rows), self._connection.total_changes()
        try:
            self._cursor.executemany(group.sql, group.rows)
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"the local copy could not be changed: {error}") from error
        except apsw.Error as error:
            raise Diverged(f"offset {group.first_offset}: {type(error).__name__}: {error}") from error
        changed = self._connection.total_changes() - before
        if changed != count:
            raise Diverged(f"{group.kind.name.lower()} of {count} rows of table {group.table!r} changed {changed} rows")

    def _apply_schema_change(self, change: SchemaChange) -> None:
        added = added_reference(change.sql)
        if added is not None:
            add_reference(self._connection, added)
        else:
            for _ in self._connection.execute(change.sql):
                pass
        self._clear_statements()
        self._schema_version += 1
        digest = schema_digest(self._connection)
        if digest != change.digest_after:
            raise Diverged(f"the schema differs from the leader's after: {change.sql}")

    def _apply_setting(self, change: SettingChange) -> None:
        kind, _, subject = change.name.partition(":")
        if kind in ("user_version", "application_id"):
            self._connection.pragma(kind, change.value)
        elif kind == "sequence":
            self._connection.execute("update main.sqlite_sequence set seq = ? where name = ?", (change.value, subject))
            if self._connection.changes() == 0:
                self._connection.execute("insert into main.sqlite_sequence(name, seq) values(?, ?)", (subject, change.value))
        elif kind == "change_images":
            set_change_images(self._connection, subject, str(change.value))
        elif kind == NOTIFY_KIND:
            pass  # `_apply_transaction` has kept it for the sessions; it changes nothing.
        elif kind in ACCESS_KINDS:
            self.access_changes += 1
            try:
                store_access_setting(self._connection, kind, subject, change.value)
            except ValueError as error:
                raise Diverged(f"the log has a {kind} that this release does not know: {error}") from error
        else:
            raise Diverged(f"the log changes the setting {change.name!r}, which this release does not know")


def follow(applier: Applier, batches: Iterable[LogBatch]) -> int:
    """Apply entries in one SQLite transaction. An error undoes all of them.

    Returns:
        The position after the last entry: an offset of the log.

    Raises:
        Diverged, EnvironmentFault: as `Applier.apply` and `Applier.commit`.
    """
    applier.begin()
    try:
        for batch in batches:
            applier.apply(batch)
        applier.commit()
    except BaseException:
        applier.rollback()
        raise
    return applier.position
