"""Writing into a log exactly once: tasks stage ledgers of their own, the commit publishes them in one compare-and-set.

Three rules, each with its trap. Spark calls `abort` after a `commit` that raised, with the same messages: so abort asks what is
published before it deletes anything. A message may be missing although its task had staged: so orphans are left to the sweeper. Commit
and abort of a stream run on another copy of the writer: so everything travels in the messages.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from triplicate.errors import ConfigError
from triplicate.log import StagedLedger
from triplicate.spark import access
from triplicate.spark.arrow import entries_of
from triplicate.spark.options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass
class Staged(WriterCommitMessage):
    """What one task wrote: nothing of it is in the log yet."""

    application: str
    partition: int
    ledgers: tuple[StagedLedger, ...]
    records: int


def _stage(write: WriteOptions, application: str, query: str, batch: int, batches: Iterator[pa.RecordBatch]) -> Staged:
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    attempt = context.attemptNumber() if context is not None else 0
    ledgers: tuple[StagedLedger, ...] = ()
    records = 0
    with access.logs(write.metadata_uri) as logs:
        staging = None
        for arrow_batch in batches:
            if staging is None and arrow_batch.num_rows:
                staging = logs.stage(write.log, application=application, query=query, batch=batch, partition=partition, attempt=attempt)
            for columns in entries_of(arrow_batch):
                assert staging is not None, "a batch with entries has rows"
                staging.append(columns)
                records += columns.count
        if staging is not None:
            ledgers = (staging.seal(),)
    return Staged(application, partition, ledgers, records)


def _publish(write: WriteOptions, application: str, batch: int | None, messages: Sequence[WriterCommitMessage | None]) -> None:
    staged = sorted((message for message in messages if isinstance(message, Staged)), key=lambda message: message.partition)
    ledgers = [ledger for message in staged for ledger in message.ledgers]
    with access.logs(write.metadata_uri) as logs:
        if not logs.publish(write.log, ledgers, application=application, batch=batch):
            # An earlier run of the same batch is in the log; what this run staged is not needed.
            logs.discard(write.log, ledgers)


def _discard(write: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    ledgers = [ledger for message in messages if isinstance(message, Staged) for ledger in message.ledgers]
    if ledgers:
        with access.logs(write.metadata_uri) as logs:
            logs.discard(write.log, ledgers)


class BatchPublisher(DataSourceArrowWriter):
    """A batch job's write. With `txnAppId` and `txnVersion` a second run of the same version adds nothing.

    Without them each job is an application of its own, published once and never asked for again.
    """

    def __init__(self, write: WriteOptions) -> None:
        self._write = write
        self._job = uuid.uuid4().hex
        if write.application is not None and write.version is None:
            raise ConfigError("triplicate: a batch write with 'txnAppId' needs 'txnVersion' too, greater for each new batch")

    @property
    def _application(self) -> str:
        return self._write.application or f"job-{self._job}"

    @property
    def _version(self) -> int:
        return self._write.version or 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _stage(self._write, self._application, self._job, self._version, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _publish(self._write, self._application, self._version, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _discard(self._write, messages)


class StreamPublisher(DataSourceStreamArrowWriter):
    """A streaming query's write: the application is `txnAppId`, or else the query's id, which its checkpoint keeps."""

    def __init__(self, write: WriteOptions) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        query = (context.getLocalProperty(_QUERY) if context is not None else None) or ""
        batch = int((context.getLocalProperty(_BATCH) if context is not None else None) or 0)
        application = self._write.application or query
        if not application:
            raise ConfigError("triplicate: the query's id is not known to the task; name the writer with option 'txnAppId'")
        return _stage(self._write, application, query, batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        application = next((message.application for message in messages if isinstance(message, Staged)), self._write.application)
        if application is not None:
            _publish(self._write, application, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _discard(self._write, messages)
