"""Applying the log to a local file: each batch of transactions exactly once, with exactly the changes that the leader made.

Triggers, foreign keys and check constraints are off: their effects are in the log. Each row operation must change exactly one row and
each schema change must lead to the leader's schema; anything else means that this copy is wrong (`Diverged`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import apsw

from triplicate.errors import Diverged, EnvironmentFault
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.records import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    Transaction,
    decode_header,
    decode_transaction,
    encode_results,
)
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.storage.sqlite_file import mark_epoch, read_state, record_batch, set_change_images
from triplicate.sql.storage.sqlite_schema import Table, load_tables, schema_digest
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


class _TableStatements:
    """The SQL texts for one table of the dictionary."""

    __slots__ = ("delete", "insert", "move", "shape", "table", "update")

    def __init__(self, table: Table) -> None:
        self.table = table
        shape = self.shape = table.shape
        name = f"main.{quote(shape.name)}"
        columns = [quote(column) for column in shape.columns]
        assignments = ", ".join(f"{column} = ?" for column in columns)
        # ABORT overrides a conflict clause of the schema: a replaced row is in the log as a delete of its own.
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

    Usage: `begin`, any number of `apply`, `commit`; or `rollback`. The position is part of the same SQLite transaction.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._tables: dict[str, Table] | None = None
        self._statements: dict[TableShape, _TableStatements] = {}
        self._of_batch: dict[int, _TableStatements] = {}
        state = read_state(connection)
        self._database = state.database
        self.position = state.position
        self._epoch = state.epoch
        self._schema_version = state.schema_version

    @property
    def schema_version(self) -> int:
        return self._schema_version

    def begin(self) -> None:
        self._connection.execute("begin immediate")

    def commit(self) -> None:
        try:
            self._connection.execute("commit")
        except LOCAL_FAULTS as error:
            raise EnvironmentFault(f"the local copy could not be committed: {error}") from error

    def rollback(self) -> None:
        """Undo everything since `begin`."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        state = read_state(self._connection)
        self.position, self._epoch, self._schema_version = state.position, state.epoch, state.schema_version
        self._forget_tables()

    def apply(self, batch: LogBatch) -> None:
        """Apply one entry.

        Raises:
            Diverged: this copy differs from the leader's. EnvironmentFault: the disk is full or similar; a later attempt may succeed.
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
        if batch.first_offset != self.position:
            raise Diverged(f"the log goes on at offset {batch.first_offset}, this copy stands at {self.position}")
        return False

    def _apply(self, batch: LogBatch) -> None:
        if not batch.records:
            if batch.epoch > self._epoch:
                mark_epoch(self._connection, batch.epoch)
                self._epoch = batch.epoch
            return
        if batch.preamble is None:
            raise Diverged(f"offset {batch.first_offset}: an entry without a batch header; this is not a database's log")
        header = decode_header(batch.preamble)
        self._check(header, batch)
        self._of_batch.clear()
        numbers: list[int] = []
        requests: list[tuple[str, int, bytes]] = []
        for record in batch.records:
            transaction = decode_transaction(record, header.tables)
            self._transaction(transaction)
            numbers.append(transaction.number)
            if transaction.request_id:
                requests.append((transaction.request_id, transaction.number, encode_results(transaction.results)))
        if header.schema_version_after != self._schema_version:
            raise Diverged(f"the schema is at version {self._schema_version}, the leader's at {header.schema_version_after}")
        end = batch.first_offset + len(batch.records)
        record_batch(
            self._connection,
            CommitRecord(
                header.epoch,
                header.batch,
                batch.first_offset,
                end,
                header.schema_version_after,
                numbers,
                requests,
                header.time_ms,
                header.forget_before_ms,
            ),
        )
        self.position = end
        self._epoch = max(self._epoch, header.epoch)

    def _check(self, header: BatchHeader, batch: LogBatch) -> None:
        if header.database != self._database:
            raise Diverged(f"offset {batch.first_offset} belongs to another database ({header.database.hex()})")
        if header.epoch != batch.epoch:
            raise Diverged(f"offset {batch.first_offset} says epoch {header.epoch} within an entry of epoch {batch.epoch}")
        if header.schema_version_before != self._schema_version:
            raise Diverged(f"the schema is at version {self._schema_version}, the leader's was at {header.schema_version_before}")

    def _transaction(self, transaction: Transaction) -> None:
        for operation in transaction.operations:
            if isinstance(operation, RowRun):
                self._rows(operation)
            elif isinstance(operation, SchemaChange):
                self._schema(operation)
            else:
                self._setting(operation)

    def _forget_tables(self) -> None:
        self._tables = None
        self._statements.clear()
        self._of_batch.clear()

    def _prepared(self, shape: TableShape) -> _TableStatements:
        found = self._statements.get(shape)
        if found is None:
            if self._tables is None:
                self._tables = load_tables(self._connection)
            table = self._tables.get(shape.name)
            if table is None:
                raise Diverged(f"table {shape.name!r} is not in this copy")
            if table.shape != shape:
                raise Diverged(f"table {shape.name!r} has another shape in this copy: {table.shape}, the leader's is {shape}")
            found = self._statements[shape] = _TableStatements(table)
        return found

    def _rows(self, run: RowRun) -> None:
        # The batch's dictionary keeps the shapes alive while it is applied, so their identity serves as a cheap key.
        statements = self._of_batch.get(id(run.table))
        if statements is None:
            statements = self._of_batch[id(run.table)] = self._prepared(run.table)
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
        before = self._connection.total_changes()
        if run.count == 1:
            self._cursor.execute(sql, tuple(chain.from_iterable(parts)))
        else:
            self._cursor.executemany(sql, zip(*parts, strict=True))
        changed = self._connection.total_changes() - before
        if changed != run.count:
            raise Diverged(f"{run.kind.name.lower()} of {run.count} rows of {run.table.name!r} changed {changed}")

    def _schema(self, change: SchemaChange) -> None:
        for _ in self._connection.execute(change.sql):
            pass
        self._forget_tables()
        self._schema_version += 1
        digest = schema_digest(self._connection)
        if digest != change.digest_after:
            raise Diverged(f"the schema differs from the leader's after: {change.sql}")

    def _setting(self, change: SettingChange) -> None:
        kind, _, subject = change.name.partition(":")
        if kind in ("user_version", "application_id"):
            self._connection.pragma(kind, change.value)
        elif kind == "sequence":
            self._connection.execute("update main.sqlite_sequence set seq = ? where name = ?", (change.value, subject))
            if self._connection.changes() == 0:
                self._connection.execute("insert into main.sqlite_sequence(name, seq) values(?, ?)", (subject, change.value))
        elif kind == "change_images":
            set_change_images(self._connection, subject, str(change.value))
        else:
            raise Diverged(f"the log sets {change.name!r}, which this release does not know")


def follow(applier: Applier, batches: Iterable[LogBatch]) -> int:
    """Apply entries in one SQLite transaction; the position reached. An error undoes all of them."""
    applier.begin()
    try:
        for batch in batches:
            applier.apply(batch)
        applier.commit()
    except BaseException:
        applier.rollback()
        raise
    return applier.position
