"""Reading logs as a stream: offsets, rate limits, and a plan that depends on the two ends of a batch alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplicate.errors import OffsetTruncated
from triplicate.spark import access
from triplicate.spark.offsets import limited, positions_of, stream_offset
from triplicate.spark.options import LATEST, LogReadOptions, StartingPoint
from triplicate.spark.reading import plan_log_parts, start_points

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_INTERVAL_S = 0.1
"""Spark asks for the latest offset about a hundred times a second when there is nothing to do; the metadata are asked less often."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over one or several logs.

    The driver-side object lives as long as the query and keeps its client; the copies in tasks only read.
    """

    def __init__(self, read: LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema
        self._initial: dict[str, int] | None = None
        self._frozen: dict[str, int] | None = None
        self._seen: access.Seen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}

    def _latest(self) -> dict[str, int]:
        if self._frozen is not None:
            return dict(self._frozen)
        if self._seen is None:
            self._seen = access.Seen(self._read.metadata_uri, self._read.logs, LOOK_INTERVAL_S)
        return self._seen.ends()

    def initialOffset(self) -> dict[str, Any]:
        # Spark asks again after a restart before the first batch was committed, and the start of that batch is not logged.
        if self._initial is None:
            point = self._read.starting or StartingPoint(LATEST, {})
            with access.logs(self._read.metadata_uri) as logs:
                self._initial = start_points(logs, self._read, point)
        return stream_offset(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._read.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._read.max_offsets_per_trigger)
        if self._read.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._read.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begins, ends = positions_of(start), self._latest()
        if isinstance(limit, ReadMaxRows):
            ends = limited(begins, ends, limit.max_rows)
        elif isinstance(limit, ReadMaxBytes):
            with access.logs(self._read.metadata_uri) as logs:
                ends = logs.limit_bytes(begins, ends, limit.max_bytes)
        # A log whose end went back (deleted and created again) must not move the stream back.
        return stream_offset({log: max(end, begins.get(log, end)) for log, end in ends.items()})

    def reportLatestOffset(self) -> dict[str, Any]:
        return stream_offset(self._latest())

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        begins, ends = positions_of(start), positions_of(end)
        with access.logs(self._read.metadata_uri) as logs:
            for log, begin in begins.items():
                first, _ = logs.bounds(log)
                if begin < first and begin < ends.get(log, begin):
                    if self._read.fail_on_data_loss:
                        raise OffsetTruncated(
                            f"log {log} begins at offset {first}, the stream stands at {begin}: records were truncated before they were read. "
                            "Set failOnDataLoss=false to go on without them"
                        )
                    begins[log] = first
            for log in ends:
                begins.setdefault(log, logs.bounds(log)[0])
            return plan_log_parts(logs, begins, ends, self._read.records_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from triplicate.spark.source import read_log_part

        return read_log_part(self._read.metadata_uri, partition, self._schema)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing: a log is kept by its own retention, and Spark may never report the last batch."""

    def stop(self) -> None:
        if self._seen is not None:
            self._seen.close()
            self._seen = None
