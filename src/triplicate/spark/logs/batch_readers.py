"""Batch reads of logs and ledgers, from a start to an end that are fixed by the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import ending_positions, report, starting_positions
from triplicate.spark.core.given_options import EARLIEST, LATEST, StartingPoint
from triplicate.spark.core.log_options import LedgerReadOptions, LogReadOptions
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.reading import LedgerPart, find_end, find_start, plan_log_parts, read_ledger_part, read_log_part

if TYPE_CHECKING:
    import pyarrow as pa


@plain_errors("partitions", "read")
class LogBatchReader(DataSourceReader):
    """Reads logs from a start to an end that are fixed by the plan."""

    def __init__(self, read: LogReadOptions, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        with access.logs(*read.access) as logs:
            # Synced, so that records published before by another process are read even if this process's metadata server is behind.
            states = logs.synced_states(read.logs, read.reads if read.pattern else None)
            start, _ = find_start(logs, read, read.starting or StartingPoint(EARLIEST, {}), states)
            starts, losses, states = logs.decide_synced(states, lambda states: starting_positions(start, states))
            ends, truncated = ending_positions(find_end(logs, read.ending or StartingPoint(LATEST, {}), states), starts, states)
            report([*losses, *truncated], read.fail_on_data_loss)
            records = read.records_per_task(sum(max(0, ends[log] - start) for log, start in starts.items()))
            return plan_log_parts(logs, starts, ends, records, fail_on_data_loss=read.fail_on_data_loss)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_log_part(self._read, partition, self._schema)


@plain_errors("partitions", "read")
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
