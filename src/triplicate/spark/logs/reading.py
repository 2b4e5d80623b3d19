"""The common part of batch and streaming reads: partitions, and where reading begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError
from triplicate.ledger import Entry
from triplicate.log import OffsetRange
from triplicate.spark.cluster import access
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.arrow import BATCH_BYTES, BATCH_ROWS, EntryRange, record_batches
from triplicate.spark.cluster.packing import pack
from triplicate.spark.cluster.progress import LogState, gaps, report
from triplicate.spark.cluster.versions import arrow_schema
from triplicate.spark.core.given_options import EPOCH, LATEST, StartingPoint
from triplicate.spark.core.log_options import LedgerReadOptions, LogReadOptions


class LogPart(InputPartition):
    """One or more pieces of neighbouring segments of a log."""

    def __init__(self, log: str, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__((log, ranges[0].first_offset, ranges[-1].end_offset))
        self.log = log
        self.ranges = ranges

    def entries(self, logs: LogAccess) -> Iterator[EntryRange]:
        """The records, entry by entry, in the order of offsets."""
        for part in self.ranges:
            yield from logs.entries(part)


class LedgerPart(InputPartition):
    """Entries of one ledger, both ends included."""

    def __init__(self, ledger_id: int, first_entry: int, last_entry: int) -> None:
        super().__init__((ledger_id, first_entry, last_entry))
        self.ledger_id = ledger_id
        self.first_entry = first_entry
        self.last_entry = last_entry


def find_start(logs: LogAccess, read: LogReadOptions, point: StartingPoint, states: Mapping[str, LogState]) -> tuple[StartingPoint, bool]:
    """A starting point without times, and whether it is the end of a log, which would be another one later.

    Raises:
        ConfigError: a log has no record at or after its starting time, and that is an error. The point is for other logs.
    """
    point.check(states)
    if not point.times_ms:
        return point, point.word == LATEST
    found = {log: logs.offset_at(log, _moment(point, log), state.end) for log, state in states.items()}
    for log, offset in found.items():
        if offset is None and not read.may_begin_at_end:
            at = f"{_moment(point, log).isoformat()} ({point.time_ms(log)} ms)"
            raise ConfigError(
                f"triplicate: log {log!r} has no record that was written at {at} or later. Give an "
                "earlier time, or set startingOffsetsByTimestampStrategy=latest to begin at the log's end"
            )
    return _within(found, states), None in found.values()


def find_end(logs: LogAccess, point: StartingPoint, states: Mapping[str, LogState]) -> StartingPoint:
    """An ending point without times. Raises ConfigError: it is for other logs."""
    point.check(states)
    if not point.times_ms:
        return point
    return _within({log: logs.offset_at(log, _moment(point, log), state.end) for log, state in states.items()}, states)


def _moment(point: StartingPoint, log: str) -> datetime:
    return EPOCH + timedelta(milliseconds=point.time_ms(log))


def _within(found: Mapping[str, int | None], states: Mapping[str, LogState]) -> StartingPoint:
    return StartingPoint(None, {log: states[log].end if offset is None else offset for log, offset in found.items()})


def plan_log_parts(
    logs: LogAccess, starts: Mapping[str, int], ends: Mapping[str, int], records: int, *, fail_on_data_loss: bool = True
) -> list[InputPartition]:
    """Partitions between two positions. The records depend only on the positions; the partitions depend on the present segments.

    A start after its end means that there is nothing to read: Spark may request this after a restart that began at `latest`.

    Raises:
        OffsetGap: records are lost with their ledger, and that is an error.
    """
    parts: list[InputPartition] = []
    for log in sorted(ends):
        start, end = starts[log], ends[log]
        if start < end:
            planned = logs.plan(log, start, end, records, skip_lost=True)
            report(gaps(log, [(item.first_offset, item.end_offset) for item in planned], start, end), fail_on_data_loss)
            parts += [LogPart(log, ranges) for ranges in pack(planned, records)]
    return parts


def read_log_part(read: LogReadOptions, partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The records of one partition. Spark passes a bare `InputPartition` if nothing was planned."""
    if not isinstance(partition, LogPart):
        return
    with access.logs(*read.access) as logs:
        yield from record_batches(partition.log, partition.entries(logs), arrow_schema(schema))


def read_ledger_part(read: LedgerReadOptions, partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The entries of one partition; see `read_log_part`."""
    if not isinstance(partition, LedgerPart):
        return
    with access.ledgers(read.metadata_uri, read.ledger_password, read.client) as ledgers:
        entries = ledgers.entries(partition.ledger_id, partition.first_entry, partition.last_entry)
        yield from ledger_batches(entries, arrow_schema(schema))


def ledger_batches(entries: Iterable[Entry], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of a ledger's entries with the columns of `schema`."""
    waiting: list[Entry] = []
    size = 0
    for entry in entries:
        waiting.append(entry)
        size += len(entry.payload)
        if len(waiting) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _ledger_batch(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield _ledger_batch(waiting, schema)


def _ledger_batch(entries: list[Entry], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        "ledger_id": [entry.ledger_id for entry in entries],
        "entry_id": [entry.entry_id for entry in entries],
        "value": [entry.payload for entry in entries],
        "length": [len(entry.payload) for entry in entries],
    }
    try:
        return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"triplicate: an entry does not fit the schema: {error}; read it as binary") from error
