"""The data source ``triplicate``: logs and ledgers, read in parallel from the bookies and written exactly once.

Executors connect to bookies and metadata directly. Reader and writer objects are pickled between processes, so they have only plain values
and open their clients where they are used. Spark starts a process for each request (the list of sources, the columns of a source, the plan
of a read), so modules that only one of them needs are imported there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from triplicate.spark.core import log_options, source_schema, table_options
from triplicate.spark.core.column_checks import READABLE, READABLE_OF_LEDGERS, check_nullable, check_readable, check_writable, plain
from triplicate.spark.core.given_options import LOGS
from triplicate.spark.core.plain_errors import plain_errors

SOURCE = LOGS
READ_OPTIONS = (*log_options.LOG_OPTIONS, *log_options.LEDGER_OPTIONS)


@plain_errors("schema", "reader", "streamReader", "writer", "streamWriter")
class TriplicateDataSource(DataSource):
    """``spark.read.format("triplicate")``; see `docs/spark.md` for its options and columns."""

    _travelled = False
    """Whether the source was unpickled, as for the commit or abort of a stream's batch. These skip the checks, because they must publish or
    delete the staged ledgers. The process that plans the tasks creates the source itself."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _travelled=True)

    def _created(self) -> Mapping[str, str]:
        """The options, also when Spark creates a table and passes its properties with them."""
        given = dict(self.options)
        return table_options.options_of_created(SOURCE, given) if table_options.is_created(SOURCE, given) else given

    def _given(self, wanted: StructType, known: Sequence[str]) -> Mapping[str, str]:
        """The options of a query, merged with those of its table.

        Args:
            wanted: the columns that Spark requests, or writes.
        """
        table = table_options.options_in([(field.name, field.metadata) for field in wanted.fields])
        if table is not None and [field.name for field in wanted.fields] != [name for name, _, _ in _table_columns(table)]:
            table = None
        return table_options.effective(self.options, table, known)

    def schema(self) -> str | StructType:
        given = self._created()
        columns = _table_columns(given)
        if table_options.is_created(SOURCE, dict(self.options)):
            return table_options.marked(source_schema.struct(columns), given)
        return source_schema.ddl(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        from triplicate.spark.logs.batch_readers import LedgerBatchReader, LogBatchReader

        wanted = plain(schema)
        given = self._given(schema, READ_OPTIONS)
        if log_options.reads_ledgers(given):
            check_readable(_columns(wanted), READABLE_OF_LEDGERS)
            return LedgerBatchReader(log_options.ledger_read_options(given), wanted)
        check_nullable(wanted)
        check_readable(_columns(wanted), READABLE)
        return LogBatchReader(log_options.log_read_options(given), wanted)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from triplicate.spark.logs.streaming import LogStreamReader

        wanted = plain(schema)
        given = self._given(schema, READ_OPTIONS)
        if log_options.reads_ledgers(given):
            raise ConfigError("triplicate: ledgers are read in batches; a stream needs the option 'log'")
        check_nullable(wanted)
        check_readable(_columns(wanted), READABLE)
        return LogStreamReader(log_options.log_read_options(given, streaming=True), wanted)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        write = self._write_options(schema, overwrite, streaming=False)
        from triplicate.spark.logs.admission import DiscardedBatch, admit, warn_of_discarded
        from triplicate.spark.logs.writing import BatchPublisher

        already = admit(write)
        if already is not None:
            warn_of_discarded(write.log, write.application, write.version, already, records=None)
            return DiscardedBatch()
        return BatchPublisher(write)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        write = self._write_options(schema, overwrite, streaming=True)
        from triplicate.spark.logs.admission import admit
        from triplicate.spark.logs.writing import StreamPublisher

        if not self._travelled:
            admit(write)
        return StreamPublisher(write)

    def _write_options(self, schema: StructType, overwrite: bool, *, streaming: bool) -> log_options.WriteOptions:
        """The options of a write whose columns can be written."""
        given, columns = self._given(schema, log_options.WRITE_OPTIONS), _columns(schema)
        # A query with its own options is not an INSERT into a table of this source, whose columns the log fills.
        into_table = "metadataserviceuri" not in {key.lower() for key in self.options}
        write = log_options.write_options(given, streaming=streaming, columns=[name for name, _ in columns], into_table=into_table)
        if overwrite:
            raise ConfigError("triplicate: a log is only appended to: use mode('append'); `triplicate log truncate` drops old records")
        check_writable(columns, into_table=into_table)
        return write


def _table_columns(given: Mapping[str, str]) -> Sequence[source_schema.Column]:
    """The columns that result from the options."""
    if log_options.reads_ledgers(given):
        log_options.ledger_read_options(given)
        return source_schema.LEDGER_COLUMNS
    read = log_options.log_read_options(given, streaming=None)
    return source_schema.log_columns(include_headers=read.include_headers, include_metadata=read.include_metadata, names=read.columns)


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
