"""The data source ``triplicate-changes``: a table's change feed, straight from its database's log.

Every row of the feed is one row change in the order in which it happened: the table's columns, then `_change_type` (insert,
update_preimage where the table logs it, update_postimage, delete), `_commit_version` (the offset of the transaction's record, so
versions grow but are not consecutive for one table), `_commit_timestamp` and `_seq` (order within the transaction). A delete carries
the row's key, and all of the row where the table's `change_images` is full. One record is one transaction, so a batch never cuts one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError, FormatError, OffsetTruncated
from triplicate.spark import access, catalogue, options, schema
from triplicate.spark.change_rows import CHANGE_COLUMNS, ChangeBatches
from triplicate.spark.offsets import positions_of, stream_offset
from triplicate.spark.options import LATEST, ChangesOptions
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

    def schema(self) -> str:
        read = options.changes_options(dict(self.options))
        columns = catalogue.table_columns(read.metadata_uri, read.database, read.table)
        reserved = [name for name, _ in columns if name.lower() in CHANGE_COLUMNS]
        if reserved:
            raise ConfigError(f"triplicate-changes: table {read.table!r} has a column {reserved[0]!r}, which the feed needs for itself")
        return schema.changes_schema(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return ChangesReader(_Feed(options.changes_options(dict(self.options)), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ChangesStreamReader(_Feed(options.changes_options(dict(self.options), streaming=True), schema))


class _Feed:
    """What batch and stream share. Plain values only: it travels."""

    def __init__(self, read: ChangesOptions, wanted: StructType) -> None:
        self.options = read
        self.log = catalogue.database_log(read.metadata_uri, read.database)
        self._wanted = wanted

    def logs(self) -> AbstractContextManager[access.LogAccess]:
        return access.logs(self.options.metadata_uri, self.options.ledger_password)

    def seen(self) -> access.Seen:
        return access.Seen(self.options.metadata_uri, self.options.ledger_password, (self.log,), LOOK_INTERVAL_S)

    def start(self, first: int, end: int) -> int:
        """The version to begin with.

        Raises:
            OffsetTruncated: it is no longer there.
        """
        wanted = self.options.starting_version
        if wanted is None or isinstance(wanted, str):
            return end if wanted == LATEST else first
        self.check(wanted, first)
        return wanted

    def check(self, version: int, first: int) -> None:
        """Raises OffsetTruncated where a version to be read is gone."""
        if version < first:
            raise OffsetTruncated(
                f"the log of database {self.options.database!r} begins at version {first}; {version} was truncated before it was read: "
                "begin again from the table as it is"
            )

    def plan(self, logs: access.LogAccess, start: int, end: int) -> list[InputPartition]:
        """Partitions of whole transactions."""
        return plan_log_parts(logs, {self.log: start}, {self.log: end}, RECORDS_PER_PARTITION)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LogPart):
            return
        batches = ChangeBatches(self.options.table, to_arrow_schema(self._wanted, timezone="UTC"))
        with self.logs() as logs:
            for part in logs.entries(partition.range):
                yield from batches.add(part)
        yield from batches.finish()


class ChangesReader(DataSourceReader):
    """The changes between two versions, both included; by default all that the log still holds."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed

    def partitions(self) -> Sequence[InputPartition]:
        feed = self._feed
        with feed.logs() as logs:
            first, end = logs.bounds(feed.log)
            last = feed.options.ending_version
            return feed.plan(logs, feed.start(first, end), end if last is None else min(end, last + 1))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._feed.read(partition)


class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The change feed as a stream; its offset is the version after the last change delivered."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed
        self._initial: int | None = None
        self._frozen: int | None = None
        self._seen: access.Seen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}

    def _latest(self, *, fresh: bool = False) -> int:
        if self._frozen is not None:
            return self._frozen
        if self._seen is None:
            self._seen = self._feed.seen()
        return self._seen.ends(fresh=fresh)[self._feed.log]

    def _offset(self, version: int) -> dict[str, Any]:
        return stream_offset({self._feed.log: version})

    def _version(self, offset: Mapping[str, Any]) -> int:
        version = positions_of(offset).get(self._feed.log)
        if version is None:
            database = self._feed.options.database
            raise FormatError(f"the checkpoint is of another database than {database!r}: it holds {dict(offset)!r}; use a new checkpoint")
        return version

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            with self._feed.logs() as logs:
                self._initial = self._feed.start(*logs.bounds(self._feed.log))
        return self._offset(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._feed.options.max_versions_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin, end = self._version(start), self._latest()
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        return self._offset(max(begin, end))

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self._latest())

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest(fresh=True)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        feed, begin, stop = self._feed, self._version(start), self._version(end)
        with feed.logs() as logs:
            if begin < stop:
                feed.check(begin, logs.bounds(feed.log)[0])
            return feed.plan(logs, begin, stop)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._feed.read(partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing: the database's log is kept by its own rule."""

    def stop(self) -> None:
        """Nothing: the client is the process's, and ends with it."""
