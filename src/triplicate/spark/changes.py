"""The data source ``triplicate-changes``: a table's change feed, straight from its database's log.

Every row of the feed is one row change in the order in which it happened: the table's columns, then `_change_type` (insert,
update_preimage where the table logs it, update_postimage, delete), `_commit_version` (the offset of the transaction's record, so
versions grow but are not consecutive for one table), `_commit_timestamp` and `_seq` (order within the transaction). A delete carries the row's
key, and all of the row where the table's `change_images` is full. One record is one transaction, so a batch never cuts one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError, OffsetTruncated
from triplicate.spark import access, options, schema
from triplicate.spark.change_rows import ChangeBatches
from triplicate.spark.offsets import limited, positions_of, stream_offset
from triplicate.spark.options import EARLIEST, ChangesOptions
from triplicate.spark.reading import LogPart, plan_log_parts
from triplicate.spark.streaming import LOOK_INTERVAL_S

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS_PER_PARTITION = 2_000
"""Transactions, not rows: one may hold thousands."""


class ChangesDataSource(DataSource):
    """``spark.read.format("triplicate-changes")``; see `docs/spark.md`."""

    @classmethod
    def name(cls) -> str:
        return "triplicate-changes"

    def _read(self) -> ChangesOptions:
        return options.changes_options(dict(self.options))

    def schema(self) -> str:
        read = self._read()
        columns = access.table_columns(read.metadata_uri, read.database, read.table)
        reserved = [name for name, _ in columns if name in ("_change_type", "_commit_version", "_commit_timestamp", "_seq")]
        if reserved:
            raise ConfigError(f"triplicate-changes: table {read.table} has a column {reserved[0]}, which the feed needs for itself")
        return schema.changes_schema(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return ChangesReader(self._read(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ChangesStreamReader(self._read(), schema)


def _read_part(read: ChangesOptions, partition: InputPartition, wanted: StructType) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, LogPart):
        return
    batches = ChangeBatches(read.table, to_arrow_schema(wanted, timezone="UTC"))
    with access.logs(read.metadata_uri) as logs:
        for part in logs.entries(partition.range):
            yield from batches.add(part)
    yield from batches.finish()


class ChangesReader(DataSourceReader):
    """The changes between two versions, both included; by default all that the log still holds."""

    def __init__(self, read: ChangesOptions, schema: StructType) -> None:
        self._options = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._options
        log = access.database_log(read.metadata_uri, read.database)
        with access.logs(read.metadata_uri) as logs:
            first, end = logs.bounds(log)
            start = _starting(read, first, end, default=first)
            if read.ending_version is not None:
                end = min(end, read.ending_version + 1)
            return plan_log_parts(logs, {log: start}, {log: end}, RECORDS_PER_PARTITION)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read_part(self._options, partition, self._schema)


def _starting(read: ChangesOptions, first: int, end: int, *, default: int) -> int:
    wanted = read.starting_version
    if wanted is None:
        return default
    if isinstance(wanted, str):
        return first if wanted == EARLIEST else end
    if wanted < first:
        raise OffsetTruncated(f"the log of database {read.database} begins at version {first}; {wanted} was truncated: begin at a snapshot")
    return wanted


class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The change feed as a stream; its offset is the version after the last change delivered."""

    def __init__(self, read: ChangesOptions, schema: StructType) -> None:
        self._options = read
        self._schema = schema
        self._log = access.database_log(read.metadata_uri, read.database)
        self._initial: int | None = None
        self._frozen: dict[str, int] | None = None
        self._seen: access.Seen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}

    def _latest(self) -> dict[str, int]:
        if self._frozen is not None:
            return dict(self._frozen)
        if self._seen is None:
            self._seen = access.Seen(self._options.metadata_uri, (self._log,), LOOK_INTERVAL_S)
        return self._seen.ends()

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            with access.logs(self._options.metadata_uri) as logs:
                first, end = logs.bounds(self._log)
            self._initial = _starting(self._options, first, end, default=first)
        return stream_offset({self._log: self._initial})

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_versions_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begins, ends = positions_of(start), self._latest()
        if isinstance(limit, ReadMaxRows):
            ends = limited(begins, ends, limit.max_rows)
        return stream_offset({log: max(end, begins.get(log, end)) for log, end in ends.items()})

    def reportLatestOffset(self) -> dict[str, Any]:
        return stream_offset(self._latest())

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        begins, ends = positions_of(start), positions_of(end)
        with access.logs(self._options.metadata_uri) as logs:
            first, _ = logs.bounds(self._log)
            if begins[self._log] < first:
                raise OffsetTruncated(
                    f"the log of database {self._options.database} begins at version {first}, the stream stands at {begins[self._log]}: "
                    "changes were truncated before they were read; begin again from a snapshot of the table"
                )
            return plan_log_parts(logs, begins, ends, RECORDS_PER_PARTITION)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read_part(self._options, partition, self._schema)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing: the database's log is kept by its own rule."""

    def stop(self) -> None:
        if self._seen is not None:
            self._seen.close()
            self._seen = None
