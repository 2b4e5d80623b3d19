"""The data source ``triplicate``: logs and ledgers, read in parallel from the bookies and written exactly once.

Executors talk to bookies and metadata directly. Reader and writer objects travel between processes, so they hold plain values only and
open their clients where they work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError
from triplicate.spark import access, options, schema
from triplicate.spark.arrow import check_writable, record_batches
from triplicate.spark.reading import LedgerPart, LogPart, end_points, ledger_batches, plan_log_parts, start_points
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
            return LedgerReader(options.ledger_read_options(given), schema)
        return LogBatchReader(options.log_read_options(given), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = self._given()
        if options.reads_ledgers(given):
            raise ConfigError("triplicate: ledgers are read in batches; a stream needs the option 'log'")
        return LogStreamReader(options.log_read_options(given), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        self._refuse(schema, overwrite)
        return BatchPublisher(options.write_options(self._given()))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        self._refuse(schema, overwrite)
        return StreamPublisher(options.write_options(self._given()))

    def _refuse(self, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("triplicate: a log can only be appended to; use mode('append'), and 'triplicate log truncate' to drop records")
        check_writable([(field.name, field.dataType.simpleString()) for field in schema.fields])


class LogBatchReader(DataSourceReader):
    """Reads logs from a start to an end that are fixed when the plan is made."""

    def __init__(self, read: options.LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        with access.logs(read.metadata_uri) as logs:
            starts = start_points(logs, read, read.starting or options.StartingPoint(options.EARLIEST, {}))
            ends = end_points(logs, read)
            return plan_log_parts(logs, starts, ends, read.records_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read.metadata_uri, partition, self._schema)


def read_log_part(metadata_uri: str, partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The records of one partition. Spark hands over a bare `InputPartition` where there was nothing to read."""
    if not isinstance(partition, LogPart):
        return
    with access.logs(metadata_uri) as logs:
        yield from record_batches(partition.log, logs.entries(partition.range), to_arrow_schema(schema, timezone="UTC"))


class LedgerReader(DataSourceReader):
    """Reads closed and open ledgers up to their last add confirmed."""

    def __init__(self, read: options.LedgerReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        parts: list[InputPartition] = []
        with access.ledgers(read.metadata_uri) as ledgers:
            for ledger_id in read.ledger_ids:
                last = ledgers.last_add_confirmed(ledger_id, read.password)
                for first in range(0, last + 1, read.entries_per_partition):
                    parts.append(LedgerPart(ledger_id, first, min(last, first + read.entries_per_partition - 1)))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LedgerPart):
            return
        arrow: Any = to_arrow_schema(self._schema, timezone="UTC")
        with access.ledgers(self._read.metadata_uri) as ledgers:
            entries = ledgers.entries(partition.ledger_id, self._read.password, partition.first_entry, partition.last_entry)
            yield from ledger_batches(entries, arrow)
