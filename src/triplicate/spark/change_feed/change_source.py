"""The data source ``triplicate-changes``: a table's change feed, read directly from its database's log.

Every row of the feed is one row change, in order: the table's columns, then `_change_type` (insert, update_preimage if the table logs it,
update_postimage, delete), `_commit_version` (the offset of the transaction's record, so versions increase but are not consecutive for one
table), `_commit_timestamp` and `_seq` (order within the transaction). A delete has the row's key, and the whole row if the table's
`change_images` is full. One record is one transaction, so a batch never splits a transaction.

The table is the one that has the name when the query begins. It may have had other names and columns before (`lineage`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import DateType, DecimalType, StructType, TimestampNTZType, TimestampType

from triplicate.errors import ArgumentError, ConfigError, EnvironmentFault, LogReplaced, OffsetTruncated, SchemaChanged
from triplicate.log import OffsetRange
from triplicate.spark.change_feed.change_rows import CHANGE_COLUMNS, OTHER_COLUMNS, ChangeBatches, Content, row_columns
from triplicate.spark.change_feed.feed import (
    CarriedDifferences,
    FeedRequest,
    FollowedTable,
    check_consumer,
    check_name,
    follow,
    refuse_carried,
    truncated,
)
from triplicate.spark.change_feed.lineage import Lineage
from triplicate.spark.change_feed.schema_history import SchemaHistory
from triplicate.spark.cluster import access, database_tables, table_content
from triplicate.spark.cluster.column_values import spark_type
from triplicate.spark.cluster.versions import (
    HAS_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema,
    check_limits,
)
from triplicate.spark.core import source_schema
from triplicate.spark.core.change_offsets import BEFORE_SNAPSHOT, ChangesOffset, decode_offset
from triplicate.spark.core.change_options import DECLARED, SNAPSHOT, TEXT, ChangesOptions, changes_options
from triplicate.spark.core.given_options import LATEST
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.streaming import LOOK_INTERVAL_S
from triplicate.sql import fold, part_of

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS_PER_PARTITION = 2_000
"""Number of transactions, not of rows: a transaction may have thousands of rows."""
DROPPED_INTERVAL_S = 10.0
"""Interval at which a stream checks whether its database was dropped."""
BEHIND_S = 10.0
"""Maximum wait for a schema change that a node has applied but that is not readable in the log yet."""
_BEHIND_PAUSE_S = 0.1


_TYPED = (DateType, DecimalType, TimestampNTZType, TimestampType)
"""Types of columns that earlier releases deliver as strings."""


@plain_errors("schema", "reader", "streamReader")
class ChangesDataSource(DataSource):
    """``spark.read.format("triplicate-changes")``; see `docs/spark.md`."""

    @classmethod
    def name(cls) -> str:
        return "triplicate-changes"

    def schema(self) -> str:
        read = changes_options(dict(self.options))
        table = database_tables.table_columns(read.metadata_uri, read.database, read.table)
        reserved = [name for name, _ in table.columns if name.lower() in (*CHANGE_COLUMNS, *OTHER_COLUMNS)]
        if reserved:
            raise ConfigError(f"triplicate-changes: table {read.table!r} has a column {reserved[0]!r}, which the feed needs for itself")
        texts = read.column_types == TEXT
        columns = [(name, spark_type(declared, texts=texts)) for name, declared in table.columns]
        return source_schema.changes_schema(columns, version=table.schema_version, rowid=table.known_by_rowid, events=read.deliver_events)

    def reader(self, schema: StructType) -> DataSourceReader:
        return ChangesReader(_Feed(changes_options(dict(self.options)), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ChangesStreamReader(_Feed(changes_options(dict(self.options), streaming=True), schema))


class ChangesPart(InputPartition):
    """Transactions of one segment of the log, and the table's history."""

    def __init__(self, part: OffsetRange, lineage: Lineage) -> None:
        super().__init__((part.first_offset, part.end_offset))
        self.range = part
        self.lineage = lineage


class CarriedPart(InputPartition):
    """Column changes that a consumer must apply to its rows before the transactions from a version on."""

    def __init__(self, carried: CarriedDifferences, version: int, lineage: Lineage) -> None:
        super().__init__((version, len(carried.carried)))
        self.carried = carried
        self.version = version
        self.lineage = lineage


class SnapshotPart(InputPartition):
    """Rows of the table's content."""

    def __init__(self, content: Content, lineage: Lineage) -> None:
        super().__init__((content.version, content.part.first_row))
        self.content = content
        self.lineage = lineage


class _Feed:
    """The common part of batch and stream. It has only plain values, because it is pickled."""

    def __init__(self, read: ChangesOptions, asked: StructType) -> None:
        self.options = read
        self.log = database_tables.database_log(read.metadata_uri, read.database)
        self._asked = asked
        named = source_schema.schema_version(field.metadata.get("comment") for field in asked.fields if field.name == "_commit_version")
        self._whole = named is not None
        self._anchor = named
        self._followed: FollowedTable | None = None

    def logs(self) -> AbstractContextManager[access.LogAccess]:
        return access.logs(self.options.metadata_uri, self.options.ledger_password, self.options.keys_file)

    def poller(self) -> access.LogStatePoller:
        return access.LogStatePoller(
            self.options.metadata_uri, self.options.ledger_password, (self.log,), LOOK_INTERVAL_S, self.options.keys_file
        )

    @property
    def types(self) -> str | None:
        """Whether rows have the declared types, as an offset says it."""
        return DECLARED if self._whole and self.options.column_types != TEXT else None

    def check_types(self, start: ChangesOffset) -> None:
        """Raises SchemaChanged: rows were delivered with strings, and the query does not say that declared types may follow."""
        if self.types is None or start.types is not None or self.options.column_types is not None:
            return
        own = set(row_columns(self._asked.names))
        for field in self._asked.fields:
            if field.name in own and isinstance(field.dataType, _TYPED):
                raise SchemaChanged(
                    f"triplicate-changes: the checkpoint is of an earlier release, or of a query with other types: column {field.name!r} "
                    f"may have been a string up to version {start.version}, and is {field.dataType.simpleString()} now. Set option "
                    "columnTypes=text, and the stream goes on with strings; or columnTypes=declared if what it writes into takes the types"
                )

    @property
    def named_anchor(self) -> int | None:
        """The anchor, or None if it is not known yet."""
        return self._anchor

    def anchor(self, logs: access.LogAccess) -> int | None:
        """The schema version of the query's columns: that of the node that returned them, otherwise the log's at the first call. None if
        the log is empty.
        """
        if self._anchor is None:
            first, end = logs.bounds(self.log)
            if first < end:
                with logs.parts(self.log, end - 1, end) as parts:
                    self._anchor = SchemaHistory(parts.entries, end - 1, end).version_after
        return self._anchor

    def start(self, logs: access.LogAccess, first: int, end: int, *, streaming: bool) -> int:
        """The first version to read.

        Raises:
            OffsetTruncated: the version was truncated, or the log may have held more of the requested changes. ArgumentError: the version
                does not exist yet, or everything is older than the requested time; a stream begins at the end then.
        """
        begin = self._start(logs, first, end, streaming=streaming)
        requested, since = self.options.starting_version, self.options.starting_time
        doubtful = first > 0 and (requested is None if since is None else begin == first)
        if doubtful and (first == end or not self.follow(logs, first).created):
            raise truncated(self.options.database, self.options.table, first, since)
        return begin

    def _start(self, logs: access.LogAccess, first: int, end: int, *, streaming: bool) -> int:
        version, since = self.options.starting_version, self.options.starting_time
        if since is not None:
            found = logs.offset_at(self.log, since, end)
            if found is None and not streaming:
                raise ArgumentError(
                    f"the log of database {self.options.database!r} ends at version {end}, and all before it is older than "
                    f"startingTimestamp {since}"
                )
            return end if found is None else found
        if version is None or isinstance(version, str):
            return end if version == LATEST else first
        self.check(version, first)
        if version > end:
            raise ArgumentError(f"the log of database {self.options.database!r} ends at version {end}; startingVersion says {version}")
        return version

    def check(self, version: int, first: int) -> None:
        """Raises OffsetTruncated: a version to be read was truncated."""
        if version < first:
            raise OffsetTruncated(
                f"the log of database {self.options.database!r} begins at version {first}; {version} was truncated before it was read: "
                "begin again from the table as it is"
            )

    def end(self, logs: access.LogAccess, end: int) -> int:
        """The version after the last one to read, in a batch read."""
        last, until = self.options.ending_version, self.options.ending_time
        if until is not None:
            found = logs.offset_at(self.log, until + timedelta(microseconds=1), end)
            return end if found is None else min(end, found)
        return end if last is None else self.whole(logs, min(end, last + 1), end)

    def whole(self, logs: access.LogAccess, end: int, log_end: int) -> int:
        """The end of a batch, moved behind the transaction that it would divide: one of several MiB has several records."""
        if not 0 < end < log_end:
            return end
        with logs.parts(self.log, end - 1, end) as parts:
            entry = next(iter(parts.entries(end - 1, end)))
            (record,) = entry.view.values(entry.low, entry.high)
        part = part_of(record or b"")
        return end + part.of - part.number

    def follow(self, logs: access.LogAccess, begin: int, *, known: int | None = None, held: bool = False) -> FollowedTable:
        """The table's history from a version on, which must not be beyond the log's end. It is computed once.

        Args:
            known, held: as in `FeedRequest`.
        """
        if self._followed is not None and self._followed.begin <= begin:
            return self._followed
        deadline = time.monotonic() + BEHIND_S
        while True:
            first, end = logs.bounds(self.log)
            request = self._request(self.anchor(logs) or 0, known, held=held)
            with logs.parts(self.log, min(first, begin), end) as parts:
                followed = follow(parts.entries, request, first, begin, end)
            if followed is not None:
                break
            if time.monotonic() >= deadline:
                raise EnvironmentFault(
                    f"the log of database {self.options.database!r} cannot be read up to schema version {request.anchor}, which a node has "
                    f"named, within {BEHIND_S:g} s; try again"
                )
            time.sleep(_BEHIND_PAUSE_S)
        self._followed = followed
        return followed

    def check_held(self, logs: access.LogAccess, begin: int) -> None:
        """Raises SchemaChanged: the consumer's rows at its starting version belong to another table."""
        if not self.options.from_the_beginning:
            self.follow(logs, begin, held=True)

    def check_end(self, logs: access.LogAccess, version: int) -> int:
        """The log's end, which must not be before a version in a checkpoint.

        Raises:
            LogReplaced: the log ends before that version.
        """
        end = logs.bounds(self.log)[1]
        if end < version:
            end = logs.synced_state(self.log, version).end
        if end < version:
            raise LogReplaced(
                f"the log of database {self.options.database!r} ends at version {end}, and the checkpoint is at {version}: the "
                "metadata was restored from an older copy, so transactions that were read are not in the database any more. Begin with "
                "a new checkpoint"
            )
        return end

    def _request(self, anchor: int, known: int | None, *, held: bool) -> FeedRequest:
        columns = tuple(row_columns(self._asked.names))
        return FeedRequest(self.options.database, self.options.table, columns, anchor, self._whole, known, held)

    def carried(self, logs: access.LogAccess, start: ChangesOffset) -> CarriedDifferences:
        """The column changes that a consumer must apply to its rows at an offset before it continues. There must be records to read.

        Raises:
            SchemaChanged: the table cannot be followed, or there are column changes and the query does not request events.
        """
        known = None if start.named is None else min(start.named, start.named if start.schema is None else start.schema)
        carried = check_consumer(self.follow(logs, start.version, known=known, held=start.table is None), start)
        if carried.carried and not self.options.deliver_events:
            raise refuse_carried(carried.carried, self.options.table, start.version)
        return carried

    def check_name(self, logs: access.LogAccess, start: ChangesOffset) -> None:
        """Check, without records to read, that the stream's table is the requested one, perhaps under another name.

        Raises:
            SchemaChanged: the stream's rows belong to another table.
        """
        if start.table is None or fold(start.table) == fold(self.options.table):
            return
        first, end = logs.bounds(self.log)
        request = self._request(self.anchor(logs) or 0, None, held=False)
        with logs.parts(self.log, first, end) as parts:
            followed = follow(parts.entries, request, first, first, end)
        if followed is None:
            raise SchemaChanged(
                f"triplicate-changes: the stream has read rows of table {start.table!r}, and the query requests {self.options.table!r}: "
                "use a new checkpoint"
            )
        check_name(followed, start)

    def check_planned(self, logs: access.LogAccess, start: ChangesOffset, end: ChangesOffset) -> None:
        """Check that a batch with records was planned for the requested table, perhaps under another name.

        The start of a stream's first batch is in no checkpoint, so only the end identifies the table of an earlier query.

        Raises:
            SchemaChanged: an earlier query has planned the batch for another table.
        """
        if end.named is not None:
            check_name(self.follow(logs, start.version), end, planned=True)

    def plan(self, logs: access.LogAccess, start: ChangesOffset, end: int, *, carries: bool) -> list[InputPartition]:
        """Partitions of whole transactions, preceded by the consumer's column changes.

        Args:
            carries: whether the consumer holds earlier rows that this query has not delivered.

        Raises:
            SchemaChanged: as `carried`.
        """
        if start.version >= end:
            return []
        carried = self.carried(logs, start) if carries else CarriedDifferences()
        followed = self.follow(logs, start.version)
        ranges = logs.plan(self.log, start.version, end, RECORDS_PER_PARTITION)
        parts: list[InputPartition] = [CarriedPart(carried, start.version, followed.lineage)] if carried.carried else []
        return parts + [ChangesPart(part, followed.lineage) for part in ranges]

    def snapshot(self, logs: access.LogAccess, stop: ChangesOffset) -> list[InputPartition]:
        """Partitions of the table's content before a version, which must not be beyond the log's end.

        Raises:
            OffsetTruncated: the database does not keep it any more. SchemaChanged: as `follow`, or an earlier query has planned the
                batch for another table. EnvironmentFault: no node can be read.
        """
        end = stop.version
        if not end:
            return []
        first, log_end = logs.bounds(self.log)
        if end <= first:
            raise OffsetTruncated(
                f"triplicate-changes: the log of database {self.options.database!r} begins at version {first}, and the content of table "
                f"{self.options.table!r} before version {end} was not read yet: begin with a new checkpoint"
            )
        followed = self.follow(logs, end)
        lineage = followed.lineage
        if stop.named is not None:
            check_name(followed, stop, planned=True)
        with logs.parts(self.log, first, log_end) as parts:
            time_us = next(iter(parts.entries(end - 1, end))).view.header.wall_time_us
            version = SchemaHistory(parts.entries, end - 1, end).version_after
        era = lineage.at(version)
        if era.table is None:
            return []
        needed = {fold(source.column) for source in era.sources if source.column is not None}
        planned: list[InputPartition] = []
        for part in table_content.plan_content(self.options.metadata_uri, self.options.database, end, era.table):
            names = tuple(name for name in part.columns if fold(name) in needed)
            # Of columns that there are none of, all that there are can be named.
            content = Content(part, names if len(names) == len(needed) else part.columns, end - 1, time_us, version)
            planned.append(SnapshotPart(content, lineage))
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ChangesPart | CarriedPart | SnapshotPart):
            return
        columns = arrow_schema(self._asked)
        batches = ChangeBatches(partition.lineage, columns, deliver=self.options.deliver_events)
        if isinstance(partition, CarriedPart):
            carried = partition.carried
            batches.carry(carried.carried, partition.version, (carried.held, carried.reached))
        elif isinstance(partition, SnapshotPart):
            content = partition.content
            rows = table_content.content_rows(self.options.metadata_uri, self.options.database, content.part, content.names)
            with closing(rows):
                yield from batches.content(content, rows)
        else:
            with self.logs() as logs:
                for part in logs.entries(partition.range):
                    yield from batches.add(part)
        yield from batches.finish()


@plain_errors("partitions", "read")
class ChangesReader(DataSourceReader):
    """The changes between two versions or times, both included; by default all changes."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed

    def partitions(self) -> Sequence[InputPartition]:
        feed = self._feed
        with feed.logs() as logs:
            first, end = logs.bounds(feed.log)
            if feed.options.starting_version == SNAPSHOT:
                return feed.snapshot(logs, ChangesOffset(feed.end(logs, end)))
            start = ChangesOffset(feed.start(logs, first, end, streaming=False))
            return feed.plan(logs, start, feed.end(logs, end), carries=not feed.options.from_the_beginning)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._feed.read(partition)


@plain_errors("initialOffset", "latestOffset", "partitions", "prepareForTriggerAvailableNow", "read")
class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The change feed as a stream. Its offset is the version after the last delivered change."""

    def __init__(self, feed: _Feed) -> None:
        """
        Raises:
            ConfigError: a limit is set, and this PySpark does not support limits.
        """
        options = feed.options
        check_limits(
            "triplicate-changes",
            maxVersionsPerTrigger=options.max_versions_per_trigger,
            maxBytesPerTrigger=options.max_bytes_per_trigger,
        )
        self._feed = feed
        self._initial: ChangesOffset | None = None
        self._frozen: int | None = None
        self._passed: int | None = None
        """The end of the last batch that this query planned. When it plans the next batch, that one was delivered with its columns."""
        self._seen: access.LogStatePoller | None = None
        self._kept_at = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}

    def _latest(self) -> int:
        if self._frozen is not None:
            return self._frozen
        if time.monotonic() - self._kept_at >= DROPPED_INTERVAL_S:
            database_tables.check_kept(self._feed.options.metadata_uri, self._feed.options.database, self._feed.log)
            self._kept_at = time.monotonic()
        return self._poller().states()[self._feed.log].end

    def _poller(self) -> access.LogStatePoller:
        if self._seen is None:
            self._seen = self._feed.poller()
        return self._seen

    def _offset(self, version: int) -> dict[str, Any]:
        """The end of a batch. Rows delivered up to it have the columns of this query."""
        anchor = self._anchor()
        return self._named(ChangesOffset(version, schema=anchor, types=self._feed.types), anchor).encode(self._feed.log)

    def _anchor(self) -> int | None:
        anchor = self._feed.named_anchor
        if anchor is None:
            with self._feed.logs() as logs:
                anchor = self._feed.anchor(logs)
        return anchor

    def _named(self, offset: ChangesOffset, anchor: int | None) -> ChangesOffset:
        return offset if anchor is None else replace(offset, table=self._feed.options.table, named=anchor)

    def _decoded(self, offset: Mapping[str, Any]) -> ChangesOffset:
        return decode_offset(offset, self._feed.log, self._feed.options.table)

    def _decoded_start(self, offset: Mapping[str, Any]) -> ChangesOffset:
        """Raises SchemaChanged: as `_Feed.check_types`."""
        start = self._decoded(offset)
        self._feed.check_types(start)
        return start

    def initialOffset(self) -> dict[str, Any]:
        feed = self._feed
        if self._initial is None:
            with feed.logs() as logs:
                first, end = logs.bounds(feed.log)
                snapshot = feed.options.starting_version == SNAPSHOT
                begin = BEFORE_SNAPSHOT if snapshot else feed.start(logs, first, end, streaming=True)
                anchor = feed.anchor(logs)
                if begin < end:
                    feed.check_held(logs, begin)
                # Unless reading starts at the beginning, the consumer holds the table's state before this version.
                held = anchor if feed.options.from_the_beginning else None
                self._initial = self._named(ChangesOffset(begin, schema=held, types=feed.types), anchor)
        return self._initial.encode(feed.log)

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._feed.options
        if options.max_versions_per_trigger is not None:
            return ReadMaxRows(options.max_versions_per_trigger)
        return ReadAllAvailable() if options.max_bytes_per_trigger is None else ReadMaxBytes(options.max_bytes_per_trigger)

    def latestOffset(self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        if start is None:  # PySpark 4.1 does not pass the position of the stream.
            return self._offset(self._latest())
        stored, end = self._decoded_start(start), self._latest()
        begin = stored.version
        if begin == BEFORE_SNAPSHOT:
            return self._offset(end)
        if isinstance(limit, ReadMaxRows | ReadMaxBytes) and begin < end:
            with self._feed.logs() as logs:
                log, latest = self._feed.log, end
                if isinstance(limit, ReadMaxRows):
                    end = min(end, begin + limit.max_rows)
                else:
                    end = logs.limit_bytes({log: begin}, {log: end}, limit.max_bytes)[log]
                end = self._feed.whole(logs, end, latest)
        if begin != self._passed:
            # Checked before the end is in the checkpoint, which names the table and its columns.
            with self._feed.logs() as logs:
                if end > begin:
                    self._feed.check(begin, logs.bounds(self._feed.log)[0])
                    self._feed.carried(logs, stored)
                else:
                    self._feed.check_end(logs, begin)
                    self._feed.check_name(logs, stored)
        # Spark treats an offset with a different text as new data.
        return self._offset(end) if end > begin else dict(start)

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self._poller().last_states()[self._feed.log].end if self._frozen is None else self._frozen)

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        feed, begin, stop = self._feed, self._decoded_start(start), self._decoded(end)
        with feed.logs() as logs:
            feed.check_end(logs, stop.version)
            if not HAS_LIMITS:
                if begin.version == stop.version:
                    feed.check_name(logs, begin)
                if begin.version > stop.version:
                    raise LogReplaced(
                        f"the feed of database {feed.options.database!r} is at version {begin.version}, and its log was seen to end at "
                        f"{stop.version}: a server that is behind, or another log. Remove the newest file in the checkpoint's folder "
                        "`offsets`, and start the query again"
                    )
            if begin.version == BEFORE_SNAPSHOT:
                planned = feed.snapshot(logs, stop)
            else:
                if begin.version < stop.version:
                    feed.check(begin.version, logs.bounds(feed.log)[0])
                planned = feed.plan(logs, begin, stop.version, carries=begin.version != self._passed)
                if planned:
                    feed.check_planned(logs, begin, stop)
        if begin.version < stop.version:
            # When a query starts, PySpark 4.1 plans the last batch again, from its end to its end. That batch delivers nothing.
            self._passed = stop.version
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._feed.read(partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Does nothing: the database decides how long its log is kept."""

    def stop(self) -> None:
        """Does nothing: the client belongs to the process and ends with it."""
