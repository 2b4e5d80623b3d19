"""Batch reads of logs and ledgers, from a start to an end that are fixed by the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import ending_positions, report, starting_positions
from triplicate.spark.core.log_options import LedgerReadOptions, LogReadOptions
from triplicate.spark.core.options import EARLIEST, LATEST, StartingPoint
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.reading import LedgerPart, find_end, find_start, plan_log_parts, read_ledger_part, read_log_part

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter


NO_END = 2**63


@plain_errors("partitions")
class LogBatchReader(DataSourceReader):
    """Reads logs from a start to an end that are fixed by the plan."""

    def __init__(self, read: LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema
        self._logs: set[str] | None = None
        """The logs whose records the query's filters admit; None: all."""
        self._first, self._end = 0, NO_END
        """Bounds of the offsets that the filters admit."""

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        with access.logs(*read.access) as logs:
            # Synced, so that records published before by another process are read even if this process's metadata server is behind.
            states = logs.synced_states(read.logs, read.reads if read.pattern else None)
            start, _ = find_start(logs, read, read.starting or StartingPoint(EARLIEST, {}), states)
            starts, losses, states = logs.decide_synced(states, lambda states: starting_positions(start, states))
            ends, truncated = ending_positions(find_end(logs, read.ending or StartingPoint(LATEST, {}), states), starts, states)
            report([*losses, *truncated], read.fail_on_data_loss)
            if self._logs is not None:
                ends = {log: end for log, end in ends.items() if log in self._logs}
            starts = {log: max(starts[log], self._first) for log in ends}
            ends = {log: max(starts[log], min(end, self._end)) for log, end in ends.items()}
            records = read.records_per_task(sum(ends[log] - start for log, start in starts.items()))
            return plan_log_parts(logs, starts, ends, records, fail_on_data_loss=read.fail_on_data_loss)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read, partition, self._schema)


class FilteredLogBatchReader(LogBatchReader):
    """Also plans by the filters of the query. Spark applies all of them again, to the rows."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        # A time is no bound: records may have times of their own, which segments do not know.
        for each in filters:
            path: tuple[str, ...] = getattr(each, "attribute", ())
            name = path[0].lower() if len(path) == 1 else ""
            value: Any = getattr(each, "value", None)
            values: tuple[Any, ...] = value if type(each).__name__ == "In" else (value,)
            if name == "log" and type(each).__name__ in _EQUALITIES:
                named = {log for log in values if isinstance(log, str)}
                self._logs = named if self._logs is None else self._logs & named
            elif name == "offset" and values and all(type(offset) is int for offset in values):
                low, high = _bounds(type(each).__name__, values)
                self._first, self._end = max(self._first, low), min(self._end, high)
        return filters


_EQUALITIES = ("EqualTo", "EqualNullSafe", "In")


def _bounds(kind: str, values: Sequence[int]) -> tuple[int, int]:
    """The first offset that a filter admits, and the one after the last."""
    match kind:
        case "EqualTo" | "EqualNullSafe" | "In":
            return min(values), max(values) + 1
        case "GreaterThan" | "GreaterThanOrEqual":
            return values[0] + (kind == "GreaterThan"), NO_END
        case "LessThan" | "LessThanOrEqual":
            return 0, values[0] + (kind == "LessThanOrEqual")
        case _:
            return 0, NO_END


@plain_errors("partitions")
class LedgerBatchReader(DataSourceReader):
    """Reads closed and open ledgers up to their last-add-confirmed."""

    def __init__(self, read: LedgerReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        parts: list[InputPartition] = []
        with access.ledgers(read.metadata_uri, read.ledger_password, read.client) as ledgers:
            for ledger_id in read.ledger_ids:
                last = ledgers.last_add_confirmed(ledger_id)
                step = read.entries_per_partition
                parts += [LedgerPart(ledger_id, first, min(last, first + step - 1)) for first in range(0, last + 1, step)]
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ledger_part(self._read, partition, self._schema)
