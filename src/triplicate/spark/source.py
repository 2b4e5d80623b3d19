"""The data source ``triplicate``: logs and ledgers, read in parallel from the bookies and written exactly once.

Executors talk to bookies and metadata directly. Reader and writer objects travel between processes, so they hold plain values only and
open their clients where they work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError
from triplicate.spark import access, options, schema
from triplicate.spark.arrow import READABLE, READABLE_OF_LEDGERS, check_readable, check_writable
from triplicate.spark.progress import ending_positions, report, starting_positions
from triplicate.spark.reading import LedgerPart, plan_log_parts, read_ledger_part, read_log_part
from triplicate.spark.streaming import LogStreamReader
from triplicate.spark.writing import BatchPublisher, StreamPublisher

if TYPE_CHECKING:
    import pyarrow as pa


class TriplicateDataSource(DataSource):
    """``spark.read.format("triplicate")``; see `docs/spark.md` for its options and columns."""

    @classmethod
    def name(cls) -> str:
        return "triplicate"

    def _given(self) -> Mapping[str, str]:
        return dict(self.options)

    def schema(self) -> str:
        given = self._given()
        if options.reads_ledgers(given):
            return schema.LEDGER_COLUMNS
        read = options.log_read_options(given)
        return schema.log_schema(include_headers=read.include_headers, include_metadata=read.include_metadata)

    def reader(self, schema: StructType) -> DataSourceReader:
        given = self._given()
        if options.reads_ledgers(given):
            check_readable(_columns(schema), READABLE_OF_LEDGERS)
            return LedgerReader(options.ledger_read_options(given), schema)
        check_readable(_columns(schema), READABLE)
        return LogBatchReader(options.log_read_options(given), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = self._given()
        if options.reads_ledgers(given):
            raise ConfigError("triplicate: ledgers are read in batches; a stream needs the option 'log'")
        check_readable(_columns(schema), READABLE)
        return LogStreamReader(options.log_read_options(given, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        self._refuse(schema, overwrite)
        return BatchPublisher(options.write_options(self._given()))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        self._refuse(schema, overwrite)
        return StreamPublisher(options.write_options(self._given(), streaming=True))

    def _refuse(self, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("triplicate: a log is only appended to: use mode('append'); `triplicate log truncate` drops old records")
        check_writable(_columns(schema))


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


class LogBatchReader(DataSourceReader):
    """Reads logs from a start to an end that are fixed when the plan is made."""

    def __init__(self, read: options.LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        with access.logs(read.metadata_uri, read.ledger_password) as logs:
            point = read.starting or options.StartingPoint(options.EARLIEST, {})
            states = {log: logs.state(log) for log in read.logs}
            starts, losses, states = logs.believed(states, lambda states: starting_positions(read, point, states))
            ends, truncated = ending_positions(read, starts, states)
            report([*losses, *truncated], read.fail_on_data_loss)
            return plan_log_parts(logs, starts, ends, read.records_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read, partition, self._schema)


class LedgerReader(DataSourceReader):
    """Reads closed and open ledgers up to their last add confirmed."""

    def __init__(self, read: options.LedgerReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        parts: list[InputPartition] = []
        with access.ledgers(read.metadata_uri, read.ledger_password) as ledgers:
            for ledger_id in read.ledger_ids:
                last = ledgers.last_add_confirmed(ledger_id)
                step = read.entries_per_partition
                parts += [LedgerPart(ledger_id, first, min(last, first + step - 1)) for first in range(0, last + 1, step)]
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ledger_part(self._read, partition, self._schema)
