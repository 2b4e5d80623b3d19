"""Writes into a table: tasks stage their rows on the bookies, and the commit sends them to the leader in one transaction.

As with logs, Spark calls `abort` after a `commit` that raised, and commit and abort of a stream run on another copy of the writer. So the
messages contain everything that they need. Staging ledgers that nobody deletes are left to the sweep of orphans.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError, TriplicateError
from triplicate.log import StagedLedger, StagingOrigin
from triplicate.spark.cluster import access, table_changes
from triplicate.spark.cluster.arrow import entries_of
from triplicate.spark.cluster.database_tables import database_log
from triplicate.spark.cluster.table_changes import TargetTable
from triplicate.spark.core.database_options import CHANGES, DELETE, INSERT, TABLES, UPSERT, TableWriteOptions
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.core.written_columns import written_columns
from triplicate.spark.logs.writing import query_and_batch
from triplicate.spark.tables.row_changes import changes_of

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A write that was checked.

    Args:
        log: of the database.
        columns: for each column that is written its place in the rows, and its name in the table.
        changed_by: the place of the column that says what each row changes; None: all rows make the change of the options.
        target: the table when the query began.
    """

    options: TableWriteOptions
    log: str
    columns: tuple[tuple[int, str], ...]
    changed_by: int | None
    target: TargetTable
    overwrite: bool


@dataclass
class StagedRows(WriterCommitMessage):
    """The result of one task. Its rows are not in the table yet.

    Args:
        application: name under which the batch is written exactly once; None if that was not requested.
        partition: the task's place in the job; rows are written in its order.
        ledger: None if the task had no rows.
    """

    application: str | None
    partition: int
    ledger: StagedLedger | None


def admit(options: TableWriteOptions, schema: StructType, *, overwrite: bool, is_checked: bool = False) -> TableWrite | None:
    """Check whether a write can succeed. None if the table has the batch of this write already.

    Args:
        is_checked: leave out what asks the leader to try the change.

    Raises:
        ConfigError: a column cannot be written, or there is no such table. SqlError: the leader refuses such a change. EnvironmentFault: no
            node leads the database.
    """
    log = database_log(options.metadata_uri, options.database)
    with table_changes.leader(options) as connection:
        target = table_changes.target_of(connection, options)
        if target.name == table_changes.BATCHES:
            raise ConfigError(f"{TABLES}: table {target.name!r} has the numbers of the batches that were written; write into another one")
        kinds = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        columns, changed_by = written_columns(kinds, options, target.columns, target.key)
        if overwrite and options.action != INSERT:
            raise ConfigError(f"{TABLES}: mode 'overwrite' replaces all rows: it goes with action '{INSERT}' only, not '{options.action}'")
        write = TableWrite(options, log, columns, changed_by, target, overwrite)
        if is_checked:
            return write
        if options.application is not None and table_changes.is_written(connection, options, target):
            _warn(write, options.application, options.batch)
            return None
        table_changes.try_out(connection, options, [_copy(write, action) for action in _actions(write)], overwrite=overwrite)
    with access.logs(options.metadata_uri, options.ledger_password, options.keys_file) as logs:
        logs.stage_beside(StagingOrigin(log)).abandon()
    return write


def _actions(write: TableWrite) -> Sequence[str]:
    return (DELETE, UPSERT) if write.options.action == CHANGES else (write.options.action,)


def _copy(write: TableWrite, action: str) -> str:
    """The statement that makes a change of rows. A deletion has the columns of the key."""
    names = [name for _, name in write.columns if action != DELETE or name in write.target.key]
    return table_changes.copy_statement(write.target.name, names, action)


def stage(write: TableWrite, application: str | None, query: str, batch: int, batches: Iterator[pa.RecordBatch]) -> StagedRows:
    """The work of a task: write its rows into a ledger, and seal it. After an error it is deleted."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    attempt = context.attemptNumber() if context is not None else 0
    filled = (batch_of_rows for batch_of_rows in batches if batch_of_rows.num_rows)
    first = next(filled, None)
    if first is None:
        return StagedRows(application, partition, None)
    options = write.options
    origin = StagingOrigin(write.log, application or "", query, batch, partition, attempt)
    with access.logs(options.metadata_uri, options.ledger_password, options.keys_file) as logs, logs.stage_beside(origin) as writer:
        for rows in chain([first], filled):
            for entry in changes_of(rows, write.columns, options.action, write.changed_by, write.target.key):
                for columns in entries_of(entry, 0):
                    writer.append_columns(columns)
        return StagedRows(application, partition, writer.seal())


def commit(write: TableWrite, application: str | None, batch: int | None, messages: Sequence[WriterCommitMessage | None]) -> None:
    """The work of a commit: all staged rows in one transaction, unless the table has the application's batch already.

    Raises:
        SqlError: the database refuses a row, or the table has changed. Nothing is written then.
        OutcomeUnknown: the connection broke at the end, and the write has no name by which it could be looked up.
    """
    ledgers = _staged(messages)
    if ledgers or write.overwrite:
        options = write.options
        with access.logs(options.metadata_uri, options.ledger_password, options.keys_file) as logs:

            def changes() -> Iterator[tuple[str, Iterator[bytes]]]:
                entries = (entry for ledger in ledgers for entry in logs.staged_entries(write.log, ledger))
                chunks = (pair for entry in entries for pair in zip(entry.keys() or (), entry.values(), strict=True))
                for action, run in groupby(chunks, itemgetter(0)):
                    yield _copy(write, (action or b"").decode()), (text or b"" for _, text in run)

            if not table_changes.write_batch(options, write.target, application, batch, changes, overwrite=write.overwrite):
                _warn(write, application, batch)
    _discard(write, ledgers)


def discard(write: TableWrite, messages: Sequence[WriterCommitMessage | None]) -> None:
    """The work of an abort. Rows that were committed are in the table, and need their ledgers no longer."""
    _discard(write, _staged(messages))


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedLedger]:
    staged = sorted((each for each in messages if isinstance(each, StagedRows)), key=lambda each: each.partition)
    return [each.ledger for each in staged if each.ledger is not None]


def _discard(write: TableWrite, ledgers: Sequence[StagedLedger]) -> None:
    options = write.options
    try:
        with access.logs(options.metadata_uri, options.ledger_password, options.keys_file) as logs:
            logs.discard(write.log, ledgers)
    except TriplicateError as error:
        # The outcome of the job matters more than leftover ledgers.
        _logger.warning("staged ledgers of database %r are left to the sweep of orphans: %s", options.database, error)


def _warn(write: TableWrite, application: str | None, batch: int | None) -> None:
    _logger.warning(
        "triplicate-table: batch %s of application %r changes nothing: table %r has it, or a later one. Its rows were not compared. A "
        "batch with other rows needs a greater number, or an application's name of its own",
        batch,
        application,
        write.target.name,
    )


@plain_errors("write", "commit", "abort")
class BatchTableWriter(DataSourceArrowWriter):
    """The write of a batch job. With `txnAppId` and `txnVersion`, a second run of the same version changes nothing."""

    def __init__(self, write: TableWrite) -> None:
        self._write = write
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options = self._write.options
        return stage(self._write, options.application, self._job, options.batch or 0, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._write, self._write.options.application, self._write.options.batch, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        discard(self._write, messages)


@plain_errors("write", "commit", "abort")
class StreamTableWriter(DataSourceStreamArrowWriter):
    """The write of a streaming query. The application is `txnAppId`, or the query's id, which its checkpoint keeps."""

    def __init__(self, write: TableWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        query, batch = query_and_batch()
        application = self._write.options.application or query
        if not application:
            raise ConfigError(f"{TABLES}: the query's id is not known to the task; name the writer with option 'txnAppId'")
        return stage(self._write, application, query, batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        application = next(
            (message.application for message in messages if isinstance(message, StagedRows)), self._write.options.application
        )
        if application is None and self._write.overwrite:
            # Without a name a driver that was taken for dead could delete the rows of its successor.
            raise ConfigError(f"{TABLES}: batch {batchId} has no task that knows the query's id; name the writer with option 'txnAppId'")
        commit(self._write, application, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        discard(self._write, messages)
