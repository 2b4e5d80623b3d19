"""Reads of a table or a query at one position: the plan on the driver, and the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from triplicate.errors import ConfigError
from triplicate.spark.cluster import database_tables, table_content
from triplicate.spark.cluster.column_values import column_of, columns_of_page, type_of_result
from triplicate.spark.cluster.table_content import ContentPage, ContentPart, quoted, stored_value
from triplicate.spark.cluster.versions import arrow_schema
from triplicate.spark.core.database_options import TABLES, TableReadOptions
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.core.source_schema import quoted as quoted_in_ddl
from triplicate.sql import fold

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

BATCH_ROWS = 4_096
"""Rows of a query that are converted at once."""


def read_schema(read: TableReadOptions) -> str:
    """The columns of a read, in Spark's DDL.

    Raises:
        ConfigError: there is no such table, view or column, or the database refuses the query. EnvironmentFault: no node answers.
    """
    source = read.query or f"SELECT * FROM {quoted(read.table)}"
    found = database_tables.result_columns(read.metadata_uri, read.database, source)
    columns = {fold(name): (name, kind) for name, kind in found}
    if len(columns) < len(found):
        raise ConfigError(f"{TABLES}: the query has two columns of one name ({', '.join(name for name, _ in found)}): name them with AS")
    wanted = [fold(name) for name in read.columns] or list(columns)
    _check_names([name for name in read.columns if fold(name) not in columns], [name for name, _ in columns.values()])
    return ", ".join(f"{quoted_in_ddl(columns[name][0])} {type_of_result(*columns[name][1])}" for name in wanted)


def _check_names(missing: Sequence[str], known: Sequence[str]) -> None:
    if missing:
        raise ConfigError(f"{TABLES}: there is no column {missing[0]!r}; there are {', '.join(map(repr, known))}")


class TablePart(InputPartition):
    """Rows of a table."""

    def __init__(self, content: ContentPart) -> None:
        super().__init__((content.position, content.first_row))
        self.content = content


class QueryPart(InputPartition):
    """Rows of a query.

    Args:
        where: a condition on its columns, or empty.
    """

    def __init__(self, node: str, position: int, number: int, where: str) -> None:
        super().__init__((position, number))
        self.node = node
        self.position = position
        self.where = where


@plain_errors("partitions", "read")
class TableReader(DataSourceReader):
    """Reads a table or a query. It has only plain values, because it is pickled."""

    def __init__(self, read: TableReadOptions, schema: StructType) -> None:
        self._read = read
        self._asked = schema

    @property
    def _source(self) -> str:
        """The query or table in FROM."""
        return database_tables.subquery(self._read.query) if self._read.query else quoted(self._read.table)

    def partitions(self) -> Sequence[InputPartition]:
        read = self._read
        point = read.point
        if not point:
            # Everything that was acknowledged before is in it.
            point = f"position {database_tables.acknowledged_position(read.metadata_uri, read.database)} or later"
        with table_content.past_connection(read.metadata_uri, read.database, point) as (node, connection):
            ((shown,),) = connection.execute("SHOW triplicate.as_of").fetchall()
            position = int(str(shown).removeprefix("position "))
            known = [each.name for each in connection.execute(f"SELECT * FROM {self._source} LIMIT 0").description or ()]
            _check_names([name for name in self._asked.names if fold(name) not in map(fold, known)], known)
            if read.query:
                return self._query_parts(connection, node, position)
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {quoted(read.table)}").fetchall() if read.min_partitions > 1 else ((0,),)
            step = min(read.rows_per_partition, -(-rows // read.min_partitions) or read.rows_per_partition)
            parts = table_content.parts_of(connection, node, position, read.table, step)
            if parts or database_tables.is_table(connection, read.table):
                return [TablePart(part) for part in parts]
            return [QueryPart(node, position, 0, "")]  # A view.

    def _query_parts(self, connection: psycopg.Connection[Any], node: str, position: int) -> list[InputPartition]:
        """Ranges of equal width of the column that the options name. Rows in which it is null are in the first."""
        read = self._read
        if not read.partition_column:
            return [QueryPart(node, position, 0, "")]
        column = quoted(read.partition_column)
        ((low, high),) = connection.execute(f"SELECT min({column}), max({column}) FROM {self._source}").fetchall()
        if low is None:
            return [QueryPart(node, position, 0, "")]
        if not isinstance(low, int) or not isinstance(high, int) or isinstance(low, bool):
            raise ConfigError(f"{TABLES}: option 'partitionColumn' is a column of integers; {read.partition_column!r} holds {low!r}")
        width = -(-(high - low + 1) // read.partitions)
        lows = range(low, high + 1, width)
        return [
            QueryPart(
                node, position, number, f"{column} >= {start} AND {column} < {start + width}{'' if number else f' OR {column} IS NULL'}"
            )
            for number, start in enumerate(lows)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self._asked)
        if isinstance(partition, TablePart):
            names = self._asked.names
            if partition.content.rowid and not any(pa.types.is_binary(kind) for kind in schema.types):
                yield from self._pages(partition.content, names, schema)
            else:
                rows = table_content.content_rows(self._read.metadata_uri, self._read.database, partition.content, names)
                with closing(rows):
                    yield from self._rows(rows, schema)
        elif isinstance(partition, QueryPart):
            yield from self._query(partition, schema)

    def _pages(self, content: ContentPart, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        pages = table_content.content_pages(self._read.metadata_uri, self._read.database, content, names)
        with closing(pages):
            for page in pages:
                yield self._batch(page, schema)

    def _batch(self, page: ContentPage, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        try:
            columns = columns_of_page(schema, page.rows, page.text)
        except (ValueError, TypeError, ArithmeticError):
            return self._converted(page.literals(), schema)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _rows(self, rows: Iterator[tuple[str, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while chunk := list(islice(rows, BATCH_ROWS)):
            yield self._converted(chunk, schema)

    def _converted(self, rows: Sequence[Sequence[str]], schema: pa.Schema) -> pa.RecordBatch:
        """Rows of literals, of which the first belong to the columns of `schema`."""
        import pyarrow as pa

        arrays = []
        for field, literals in zip(schema, zip(*rows, strict=True), strict=False):

            def misfit(_: int, value: Any, field: pa.Field = field) -> ConfigError:
                of = f"table {self._read.table!r}" if self._read.table else "the query"
                return ConfigError(
                    f"{TABLES}: {of}: column {field.name!r} holds {value!r:.60}, which is not of type {field.type}; give a schema of your "
                    "own in which the column is a string, or binary where it is not text"
                )

            arrays.append(column_of(field.type, [stored_value(literal) for literal in literals], misfit))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _query(self, part: QueryPart, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        read = self._read
        values = ", ".join(f"quote({quoted(name)})" for name in self._asked.names) or "1"
        statement = f"SELECT {values} FROM {self._source}{f' WHERE {part.where}' if part.where else ''}"
        point = f"position {part.position}"
        with (
            table_content.past_connection(read.metadata_uri, read.database, point, part.node) as (_, connection),
            closing(table_content.copied_rows(connection, statement)) as rows,
        ):
            yield from self._rows(rows, schema)
