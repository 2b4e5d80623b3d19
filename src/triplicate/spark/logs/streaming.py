"""Streaming reads of logs: offsets, rate limits, and a plan that depends only on the two ends of a batch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from triplicate.errors import LogReplaced
from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import (
    LogState,
    batch_begins,
    decided_losses,
    end_of_batch,
    not_read,
    report,
    resume,
    starting_positions,
)
from triplicate.spark.cluster.versions import (
    HAS_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
    check_limits,
)
from triplicate.spark.core.given_options import LATEST, LOGS, StartingPoint
from triplicate.spark.core.log_options import LogReadOptions
from triplicate.spark.core.offsets import LogPosition, LogPositions, decode_positions, encode_positions, limited
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.reading import find_start, plan_log_parts, read_log_part

if TYPE_CHECKING:
    import pyarrow as pa

    from triplicate.spark.cluster.watched_positions import WatchedPositions

LOOK_INTERVAL_S = 0.1
"""Minimum time between answers: an idle Spark query requests the latest offset about a hundred times a second."""


@plain_errors("initialOffset", "latestOffset", "partitions", "prepareForTriggerAvailableNow", "read")
class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream over one or several logs.

    The driver-side object lives as long as the query; the copies in tasks only read.
    """

    def __init__(self, read: LogReadOptions, schema: StructType) -> None:
        """
        Raises:
            ConfigError: a limit is set, and this PySpark does not support limits.
        """
        check_limits(
            LOGS,
            maxOffsetsPerTrigger=read.max_offsets_per_trigger,
            maxBytesPerTrigger=read.max_bytes_per_trigger,
            minOffsetsPerTrigger=read.min_offsets_per_trigger,
        )
        self._read = read
        self._schema = schema
        self._initial: LogPositions | None = None
        self._begins_empty = False
        self._last_end = LogPositions({})
        """The last end returned to PySpark 4.1, which does not pass the position of the stream."""
        self._frozen: dict[str, LogState] | None = None
        self._seen: access.LogStatePoller | None = None
        self._triggered_at = -math.inf
        """When the last batch with records was decided, by the monotonic clock."""
        self._watched: WatchedPositions | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None, "_watched": None}

    def _note(self, positions: LogPositions) -> None:
        """Let the named consumer have the positions of a committed batch."""
        if self._read.consumer:
            from triplicate.spark.cluster.watched_positions import WatchedPositions

            self._watched = self._watched or WatchedPositions(self._read.access, self._read.consumer)
            self._watched.note(positions.logs)

    def _logs(self) -> AbstractContextManager[access.LogAccess]:
        return access.logs(*self._read.access)

    def _poller(self) -> access.LogStatePoller:
        if self._seen is None:
            read = self._read
            matches = read.reads if read.pattern else None
            self._seen = access.LogStatePoller(
                read.metadata_uri, read.ledger_password, read.logs, LOOK_INTERVAL_S, read.keys_file, matches, read.client
            )
        return self._seen

    def _latest(self) -> dict[str, LogState]:
        return self._poller().states() if self._frozen is None else dict(self._frozen)

    def initialOffset(self) -> dict[str, Any]:
        # Called again after a restart before the first commit; the start of the first batch is not logged.
        if self._initial is None:
            point = self._read.starting or StartingPoint(LATEST, {})
            is_after_first_end = point.word == LATEST and bool(self._last_end.logs)
            self._initial, at_end = (self._last_end, True) if is_after_first_end else self._find_beginning(point)
            # An empty first batch stores this beginning in the checkpoint; the end of a log would be another one later.
            self._begins_empty = at_end
        return encode_positions(self._initial)

    def _find_beginning(self, point: StartingPoint) -> tuple[LogPositions, bool]:
        with self._logs() as logs:
            present = self._latest()
            start, at_end = find_start(logs, self._read, point, present)
            starts, losses, states = logs.decide_synced(present, lambda states: starting_positions(start, states))
        report(losses, self._read.fail_on_data_loss)
        return LogPositions({log: LogPosition(starts[log], states[log].log_id) for log in starts}), at_end

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._read.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._read.max_offsets_per_trigger)
        if self._read.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._read.max_bytes_per_trigger)
        if self._read.min_offsets_per_trigger is not None:
            return ReadMinRows(self._read.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        if start is not None:
            self._note(decode_positions(start))  # Spark has committed the batch that ends there. It calls `commit` with the next one.
        end = self._end_offset(start, limit)
        if end == start and self._watched is not None:
            # Spark may end a query that has read everything, and does that by killing this process. A run has ended.
            self._watched.rest() if self._frozen is None else self._watched.close()
        return end

    def _end_offset(self, start: Mapping[str, Any] | None, limit: ReadLimit | None) -> dict[str, Any]:
        # PySpark 4.1 passes neither, and requests the end before the beginning. Losses between the two ends are then found when the batch
        # is planned.
        stands = decode_positions(start) if start is not None else self._last_end
        if self._begins_empty and stands == self._initial:
            self._begins_empty = False
            return encode_positions(stands)
        with self._logs() as logs:
            resumed, losses, states = logs.decide_synced(
                self._latest(), lambda states: resume(stands, states, self._read), may_be_gone=bool(self._read.pattern)
            )
            report(losses, self._read.fail_on_data_loss)
            if self._frozen is not None:
                # After a repeated read of the states, the run ends at the second result.
                self._frozen = states
            begins = {log: position.offset for log, position in resumed.logs.items()}
            ends = {log: state.end for log, state in states.items()}
            # Spark has one limit for each source. With another than "all" the options' limits apply, each after the one before.
            if limit is not None and not isinstance(limit, ReadAllAvailable):
                begins_found = {log: logs.skip_lost_records(log, begins[log], ends[log]) for log in begins}
                # A batch that passes over lost records is not held back: the warning would come again with each look.
                if not losses and self._holds_back(sum(max(0, ends[log] - begin) for log, begin in begins_found.items())):
                    return encode_positions(stands)
                ends = self._limited(logs, begins_found, ends)
        if start is not None:
            return encode_positions(end_of_batch(stands, resumed, ends, first=stands == self._initial))
        self._last_end = LogPositions({log: LogPosition(end, states[log].log_id) for log, end in ends.items()}, resumed.left)
        return encode_positions(self._last_end)

    def _holds_back(self, records: int) -> bool:
        """Whether a batch of this number of records is too small yet. The first of a query never is, nor one of a run that ends."""
        read, now = self._read, time.monotonic()
        least = read.min_offsets_per_trigger
        if least is None or self._frozen is not None or records == 0:
            return False
        if records < least and now < self._triggered_at + read.max_trigger_delay_s:
            return True
        self._triggered_at = now
        return False

    def _limited(self, logs: access.LogAccess, begins: Mapping[str, int], ends: dict[str, int]) -> dict[str, int]:
        if self._read.max_offsets_per_trigger is not None:
            ends = limited(begins, ends, self._read.max_offsets_per_trigger)
        if self._read.max_bytes_per_trigger is not None and any(begins[log] < ends[log] for log in ends):
            ends = logs.limit_bytes(begins, ends, self._read.max_bytes_per_trigger)
        return ends

    def reportLatestOffset(self) -> dict[str, Any]:
        states = self._poller().last_states() if self._frozen is None else self._frozen
        return encode_positions(LogPositions({log: LogPosition(state.end, state.log_id) for log, state in states.items()}))

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._latest()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        stands, stops = decode_positions(start), decode_positions(end)
        # A stream from `latest`, or from a time that is to come, finds a later beginning if it restarts before its first commit. Its first
        # batch is empty.
        point = self._read.starting
        begins_later = stands == self._initial and (self._begins_empty or (point is not None and bool(point.times_ms)))
        self._begins_empty = False
        if not HAS_LIMITS and not begins_later:
            report(decided_losses(stands, stops, self._read), self._read.fail_on_data_loss)
        report(not_read(stops, self._read), self._read.fail_on_data_loss)
        with self._logs() as logs:
            found = logs.states(stops.logs)
            begins, losses, states = logs.decide_synced(found, lambda states: batch_begins(stands, stops, states), may_be_gone=True)
            report(losses, self._read.fail_on_data_loss)
            ends = {log: min(stops.logs[log].offset, states[log].end) for log in begins}
            records = self._read.records_per_task(sum(ends[log] - begin for log, begin in begins.items()))
            parts = plan_log_parts(logs, begins, ends, records, fail_on_data_loss=self._read.fail_on_data_loss)
            # The log's id is the same before and after the plan, so the plan belongs to this log.
            for log in begins:
                if logs.state(log).log_id != states[log].log_id:
                    raise LogReplaced(f"log {log!r} was deleted and created again while a batch of it was planned: start the query again")
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read, partition, self._schema)

    def commit(self, end: Mapping[str, Any]) -> None:
        """For the named consumer only: the log's retention decides how long records are kept."""
        self._note(decode_positions(end))

    def stop(self) -> None:
        """Give the named consumer its last position. PySpark 4.3 kills the process instead. The client ends with it."""
        if self._watched is not None:
            self._watched.close()
