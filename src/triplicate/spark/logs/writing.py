"""Exactly-once writes to logs: each task stages a ledger, and the commit publishes those of a log in one compare-and-set.

Three properties of Spark determine the design. Spark calls `abort` after a `commit` that raised, with the same messages, so abort reads
what is published before it deletes anything. A message may be missing although its task staged a ledger, so such ledgers are left to the
sweep of orphans. Commit and abort of a stream run on another copy of the writer, so the messages contain everything that they need.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from triplicate.errors import ConfigError, LedgerError, TriplicateError
from triplicate.log import JoinResult, StagedLedger, StagingOrigin
from triplicate.spark.cluster import access
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.arrow import entries_of
from triplicate.spark.core.log_options import WriteOptions
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.admission import warn_of_discarded
from triplicate.spark.logs.routing import TaskLedgers, by_log

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"

_logger = logging.getLogger(__name__)


@dataclass
class Staged(WriterCommitMessage):
    """The result of one task. Its records are not in the log yet.

    Args:
        application: name under which the batch is published exactly once; None if that was not requested.
        partition: the task's place in the job; records are published in its order.
        ledgers: empty if the task had no records.
        logs: the log of each ledger.
    """

    application: str | None
    partition: int
    ledgers: tuple[StagedLedger, ...]
    records: int
    logs: tuple[str, ...] = ()


def stage(write: WriteOptions, application: str | None, query: str, batch: int, batches: Iterator[pa.RecordBatch]) -> Staged:
    """The work of a task: write its records into new ledgers, one for each log, and seal them. After an error they are deleted.

    Args:
        query, batch: for the ledgers' metadata.
    """
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    attempt = context.attemptNumber() if context is not None else 0
    filled = (batch_of_rows for batch_of_rows in batches if batch_of_rows.num_rows)
    first = next(filled, None)
    if first is None:
        return Staged(application, partition, (), 0)
    origin = StagingOrigin(write.log, application or "", query, batch, partition, attempt)
    records = 0
    with access.logs(*write.access) as logs, TaskLedgers(logs, origin) as ledgers:
        for batch_of_rows in chain([first], filled):
            for log, rows in by_log(batch_of_rows, write):
                for columns in entries_of(rows, time.time_ns() // 1000):
                    ledgers.append(log, columns)
                    records += columns.count
        ledgers.seal()
    return Staged(application, partition, tuple(ledger for _, ledger in ledgers.sealed), records, tuple(log for log, _ in ledgers.sealed))


def publish(write: WriteOptions, application: str | None, batch: int | None, messages: Sequence[WriterCommitMessage | None]) -> None:
    """The work of a commit: publish all staged ledgers, to one log after the other, unless a log has the application's batch already.

    After an error some logs have the batch and others do not. The same batch again completes it.

    Raises:
        NoSuchLog: before anything is published, if one of several logs does not exist.
    """
    staged = _staged(write, messages)
    if application is None:
        staged = {log: ledgers for log, ledgers in staged.items() if ledgers}
    if not staged:
        return
    with access.logs(*write.access) as logs:
        if len(staged) > 1:
            logs.require(staged)
        for log, ledgers in staged.items():
            _publish(logs, replace(write, log=log), application, batch, ledgers)


def _publish(logs: LogAccess, write: WriteOptions, application: str | None, batch: int | None, ledgers: list[StagedLedger]) -> None:
    """Publish the ledgers of one log.

    Before that, the driver joins many small ledgers into few. Tasks cannot, since they do not know of each other.
    """
    try:
        joined = logs.join_staged(write.log, ledgers, write.target_ledger_bytes, application=application, batch=batch)
    except LedgerError as error:
        _logger.warning("%d staged ledgers of log %r are published as they are: %s", len(ledgers), write.log, error)
        joined = JoinResult(tuple(ledgers))
    try:
        published = logs.publish(write.log, joined.ledgers, application=application, batch=batch)
    except BaseException:
        # Spark aborts with the tasks' messages, which do not name the joined ledgers. Ledgers that the log lists are kept.
        _discard(write, joined.made)
        raise
    if published.already:
        # An earlier run of the same batch is in the log: the staged ledgers of this run are not needed.
        warn_of_discarded(write.log, application, batch, published, records=sum(ledger.records for ledger in ledgers))
        _discard(write, [*ledgers, *joined.made])
    else:
        _discard(write, joined.replaced)


def discard(write: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """The work of an abort: delete staged ledgers, unless their log lists them. The sweep of orphans deletes the rest later."""
    for log, ledgers in _staged(write, messages).items():
        _discard(replace(write, log=log), ledgers)


def _discard(write: WriteOptions, ledgers: Sequence[StagedLedger]) -> None:
    if not ledgers:
        return
    try:
        with access.logs(*write.access) as logs:
            logs.discard(write.log, ledgers)
    except TriplicateError as error:
        # The outcome of the job matters more than leftover ledgers.
        _logger.warning("staged ledgers of log %r are left to the sweep of orphans: %s", write.log, error)


def _staged(write: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> dict[str, list[StagedLedger]]:
    """The ledgers for each log, in the order of partitions; also for the log of the options, if there are none."""
    found: dict[str, list[StagedLedger]] = {write.log: []} if write.log else {}
    for message in sorted((each for each in messages if isinstance(each, Staged)), key=lambda each: each.partition):
        for log, ledger in zip(message.logs, message.ledgers, strict=True):
            found.setdefault(log, []).append(ledger)
    return found


def query_and_batch() -> tuple[str, int]:
    """The streaming query of this task, and the number of its batch; '' and 0 where they are not known."""
    context = TaskContext.get()
    query, batch = (None, None) if context is None else (context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH))
    return query or "", int(batch or 0)


@plain_errors("write", "commit", "abort")
class BatchPublisher(DataSourceArrowWriter):
    """The write of a batch job. With `txnAppId` and `txnVersion`, a second run of the same version adds nothing."""

    def __init__(self, write: WriteOptions) -> None:
        self._options = write
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options = self._options
        return stage(options, options.application, self._job, options.version or 0, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        publish(self._options, self._options.application, self._options.version, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        discard(self._options, messages)


@plain_errors("write", "commit", "abort")
class StreamPublisher(DataSourceStreamArrowWriter):
    """The write of a streaming query. The application is `txnAppId`, or the query's id, which its checkpoint keeps."""

    def __init__(self, write: WriteOptions) -> None:
        self._options = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        query, batch = query_and_batch()
        application = self._options.application or query
        if not application:
            raise ConfigError("triplicate: the query's id is not known to the task; name the writer with option 'txnAppId'")
        return stage(self._options, application, query, batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        application = next((message.application for message in messages if isinstance(message, Staged)), self._options.application)
        if application is not None:
            publish(self._options, application, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        discard(self._options, messages)
