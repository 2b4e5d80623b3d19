"""Reading logs as a stream: offsets, rate limits, and a plan that depends on the two ends of a batch alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplicate.errors import OffsetTruncated
from triplicate.spark import access
from triplicate.spark.offsets import limited, positions_of, stream_offset
from triplicate.spark.options import LATEST, LogReadOptions, StartingPoint
from triplicate.spark.reading import plan_log_parts, read_log_part, start_points

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_INTERVAL_S = 0.1
"""Spark asks for the latest offset about a hundred times a second when there is nothing to do; the metadata are asked less often."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over one or several logs.

    The driver-side object lives as long as the query; the copies in tasks only read.
    """

    def __init__(self, read: LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema
        self._initial: dict[str, int] | None = None
        self._frozen: dict[str, int] | None = None
        self._seen: access.Seen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}

    def _logs(self) -> AbstractContextManager[access.LogAccess]:
        return access.logs(self._read.metadata_uri, self._read.ledger_password)

    def _latest(self, *, fresh: bool = False) -> dict[str, int]:
        if self._frozen is not None:
            return dict(self._frozen)
        if self._seen is None:
            self._seen = access.Seen(self._read.metadata_uri, self._read.ledger_password, self._read.logs, LOOK_INTERVAL_S)
        return self._seen.ends(fresh=fresh)

    def _begins(self, logs: access.LogAccess, start: Mapping[str, Any], ends: Mapping[str, int]) -> dict[str, int]:
        """Where each log of an end begins. A log that joined a running stream is read from its first record, as Kafka's source does."""
        begins = positions_of(start)
        return {log: begins[log] if log in begins else logs.bounds(log)[0] for log in ends}

    def initialOffset(self) -> dict[str, Any]:
        # Spark asks again after a restart before the first batch was committed, and the start of that batch is not logged.
        if self._initial is None:
            point = self._read.starting or StartingPoint(LATEST, {})
            with self._logs() as logs:
                self._initial = start_points(logs, self._read, point)
        return stream_offset(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._read.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._read.max_offsets_per_trigger)
        if self._read.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._read.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        ends = self._latest()
        with self._logs() as logs:
            begins = self._begins(logs, start, ends)
            if isinstance(limit, ReadMaxRows):
                ends = limited(begins, ends, limit.max_rows)
            elif isinstance(limit, ReadMaxBytes) and any(begins[log] < ends[log] for log in ends):
                ends = logs.limit_bytes(begins, ends, limit.max_bytes)
        # A log whose end went back (deleted and created again) must not move the stream back.
        return stream_offset({log: max(end, begins[log]) for log, end in ends.items()})

    def reportLatestOffset(self) -> dict[str, Any]:
        return stream_offset(self._latest())

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest(fresh=True)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        ends = positions_of(end)
        with self._logs() as logs:
            begins = self._begins(logs, start, ends)
            for log, begin in begins.items():
                if begin >= ends[log]:
                    continue
                first = logs.bounds(log)[0]
                if begin < first and self._read.fail_on_data_loss:
                    raise OffsetTruncated(
                        f"log {log!r} begins at offset {first}, the stream stands at {begin}: records were truncated before they were "
                        "read. Set failOnDataLoss=false to go on without them"
                    )
                begins[log] = max(begin, first)
            return plan_log_parts(logs, begins, ends, self._read.records_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read, partition, self._schema)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing: a log is kept by its own retention, and Spark may never report the last batch."""

    def stop(self) -> None:
        """Nothing: the client is the process's, and ends with it."""
