"""The data source ``triplicate-table``: a table or a query of a database, read at one position and written exactly once.

Rows are read from nodes that follow, by a copy of the database that stands still. Rows that are written wait in staging ledgers on the
bookies, until the commit sends them to the leader in one transaction.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError
from triplicate.spark.core.database_options import TABLES, table_read_options, table_write_options
from triplicate.spark.core.plain_errors import plain_errors


@plain_errors("schema", "reader", "streamReader", "writer", "streamWriter")
class TableDataSource(DataSource):
    """``spark.read.format("triplicate-table")``; see `docs/spark.md` for its options and columns."""

    _travelled = False
    """Whether the source was unpickled, as for the commit or abort of a stream's batch. These skip the checks."""

    @classmethod
    def name(cls) -> str:
        return TABLES

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _travelled=True)

    def schema(self) -> str:
        from triplicate.spark.tables.table_reading import read_schema

        return read_schema(table_read_options(dict(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        from triplicate.spark.tables.table_reading import TableReader

        return TableReader(table_read_options(dict(self.options)), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        raise ConfigError(f"{TABLES}: a table is read as it is at one position; format 'triplicate-changes' is the stream of its changes")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from triplicate.spark.logs.admission import DiscardedBatch
        from triplicate.spark.tables.table_writing import BatchTableWriter, admit

        write = admit(table_write_options(dict(self.options), streaming=False), schema, overwrite=overwrite)
        return DiscardedBatch() if write is None else BatchTableWriter(write)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from triplicate.spark.tables.table_writing import StreamTableWriter, admit

        options = table_write_options(dict(self.options), streaming=True)
        write = admit(options, schema, overwrite=overwrite, is_checked=self._travelled)
        assert write is not None, "a stream's batches are looked up when they are committed"
        return StreamTableWriter(write)
