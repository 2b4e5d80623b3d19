"""Spark's protocol for micro-batches over the sources' own classes, without a JVM, one step at a time.

A driver is a generator that stops before each step, so that a test can end it there (its process is killed) or leave it there while
another driver goes on (its process is stopped, and woken later). The checkpoint outlives a driver: which batch ends where,
and which batches are committed. Tasks run on copies of the reader and the writer, as in executors.
Source: Spark 4, `MicroBatchExecution` (offset log before the batch, commit log after it) and `WriteToDataSourceV2Exec`
(one message from each partition, `abort` after a `commit` that raised).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, DataSourceStreamReader, InputPartition, WriterCommitMessage
from pyspark.sql.types import BinaryType, StructField, StructType

from triplicate.spark.logs import writing
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.tables import table_writing

QUERY = "0d5c6b3e-query"
VALUES = StructType([StructField("value", BinaryType())])


class ConcurrentDriver(Exception):
    """Another driver has written this batch's offset or commit into the checkpoint: the query ends, as Spark's does."""


@dataclass
class Checkpoint:
    """The files that outlive a driver. Each is created once; a second creation fails."""

    offsets: dict[int, str] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)

    def add_offset(self, batch: int, end: str) -> None:
        if self.offsets.setdefault(batch, end) is not end:
            raise ConcurrentDriver(f"batch {batch} has an offset")

    def add_commit(self, batch: int) -> None:
        if batch in self.commits:
            raise ConcurrentDriver(f"batch {batch} is committed")
        self.commits.add(batch)


class Task:
    """Stands for `pyspark.TaskContext` while a task runs."""

    running: Task | None = None

    def __init__(self, partition: int, attempt: int, batch: int) -> None:
        self._partition = partition
        self._attempt = attempt
        self._properties = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch)}

    @classmethod
    def get(cls) -> Task | None:
        return cls.running

    def partitionId(self) -> int:
        return self._partition

    def attemptNumber(self) -> int:
        return self._attempt

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


def use_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sink see `Task` where it asks Spark for the running task."""
    for module in (writing, table_writing):
        monkeypatch.setattr(module, "TaskContext", Task)


def play_drivers(start: Callable[[], Iterator[str]], data: st.DataObject, most: int) -> None:
    """Drivers of one query that are killed, or stopped, replaced and woken, as drawn in at most `most` turns; then one to the end."""
    drivers = [start()]
    for _ in range(data.draw(st.integers(1, most), "turns")):
        action = data.draw(st.sampled_from(["go on", "go on", "go on", "go on", "start another", "kill"]), "action")
        if action == "start another" and len(drivers) < 3:
            drivers.append(start())
            continue
        if not drivers:
            drivers.append(start())
        which = data.draw(st.integers(0, len(drivers) - 1), "driver")
        if action == "kill":
            del drivers[which]
            continue
        for _ in range(data.draw(st.integers(1, 9), "steps")):
            try:
                next(drivers[which])
            except (StopIteration, ConcurrentDriver):
                del drivers[which]
                break
    for _step in start():
        pass
    # Those that were stopped wake when all is done.
    for driver in drivers:
        with suppress(ConcurrentDriver):  # Its successor was ahead, as Spark finds too.
            for _step in driver:
                pass


@dataclass
class Query:
    """A copy of one log into another, or into a table, in batches.

    Args:
        source, sink: options of the two ends. kind: the data source of the sink.
        attempts: given batch and partition, how many attempts of the task run; the first one's message is used, those of the others are
            lost with their executors.
    """

    source: dict[str, str]
    sink: dict[str, str]
    checkpoint: Checkpoint
    attempts: Callable[[int, int], int] = lambda _batch, _partition: 1
    kind: type[DataSource] = TriplicateDataSource

    def driver(self) -> Iterator[str]:
        """One process of the query, from its start until nothing is left to copy. Yields the name of each step before it."""
        yield "start"
        reader, writer = self.reader(), self.writer()
        batch = max(self.checkpoint.offsets, default=-1)
        known = batch >= 0 and batch not in self.checkpoint.commits
        batch = batch if known else batch + 1
        while True:
            start = self.checkpoint.offsets.get(batch - 1)
            if start is None:
                yield f"initial offset of batch {batch}"
                start = _text(reader.initialOffset())
            if not known:
                yield f"latest offset for batch {batch}"
                end = _text(reader.latestOffset(json.loads(start), reader.getDefaultReadLimit()))
                if end == start:
                    return
                yield f"offset file of batch {batch}"
                self.checkpoint.add_offset(batch, end)
            yield from self._run(reader, writer, batch, start, self.checkpoint.offsets[batch])
            yield f"commit file of batch {batch}"
            self.checkpoint.add_commit(batch)
            batch, known = batch + 1, False

    def reader(self) -> Any:
        return TriplicateDataSource(self.source).streamReader(VALUES)

    def writer(self) -> Any:
        return self.kind(self.sink).streamWriter(VALUES, False)

    def _run(self, reader: DataSourceStreamReader, writer: DataSourceStreamArrowWriter, batch: int, start: str, end: str) -> Iterator[str]:
        yield f"plan of batch {batch}"
        messages: list[WriterCommitMessage | None] = []
        for partition, part in enumerate(reader.partitions(json.loads(start), json.loads(end))):
            for attempt in range(self.attempts(batch, partition)):
                yield f"task {partition}.{attempt} of batch {batch}"
                message = _copied(_run_task(_copied(reader), _copied(writer), _copied(part), Task(partition, attempt, batch)))
                if attempt == 0:
                    messages.append(message)
        yield f"commit of batch {batch}"
        # A stream's commit runs on another copy of the writer than its tasks.
        try:
            _copied(writer).commit(messages, batch)
        except Exception:
            _copied(writer).abort(messages, batch)
            raise


def _run_task(reader: DataSourceStreamReader, writer: DataSourceStreamArrowWriter, part: InputPartition, task: Task) -> WriterCommitMessage:
    Task.running = task
    try:
        return writer.write(_only_values(reader.read(part)))
    finally:
        Task.running = None


def _only_values(batches: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    """The columns of a record, if these are records of a log."""
    for batch in batches:
        yield batch.select(["value"]) if "value" in batch.schema.names else batch


def _copied(thing: Any) -> Any:
    """As it is on the other side of a pipe."""
    return pickle.loads(pickle.dumps(thing))


def _text(offset: dict[str, Any]) -> str:
    return json.dumps(offset, sort_keys=True)
